"""Methods of native classes that say what those of OpenVINO say."""

from carafe._native import ConstOutput, Dimension


def __deepcopy__(self, memo):
    """Ports are not copied."""
    raise TypeError("Cannot deepcopy 'openvino.ConstOutput' object.")


def __repr__(self):
    """The dimension with the name of its class."""
    return f"<Dimension: {self}>"


ConstOutput.__deepcopy__ = __deepcopy__
Dimension.__repr__ = __repr__
