"""Methods of native classes whose signatures programs look at, and those that say what OpenVINO's say."""

from carafe._native import CompiledModel, ConstOutput, Dimension, InferRequest

_call = CompiledModel._call
_infer = InferRequest._infer


def __call__(self, inputs=None, share_inputs=True, share_outputs=False, *, decode_strings=True):
    """Infers with a request that is kept from one call to the next. Calls of several threads run beside each other."""
    return _call(self, inputs, share_inputs, share_outputs, decode_strings)


def infer(self, inputs=None, share_inputs=False, share_outputs=False, *, decode_strings=True):
    """Infers and waits for the end."""
    return _infer(self, inputs, share_inputs, share_outputs, decode_strings)


def __deepcopy__(self, memo):
    """Ports are not copied."""
    raise TypeError("Cannot deepcopy 'openvino.ConstOutput' object.")


def __repr__(self):
    """The dimension with the name of its class."""
    return f"<Dimension: {self}>"


CompiledModel.__call__ = __call__
InferRequest.infer = infer
ConstOutput.__deepcopy__ = __deepcopy__
Dimension.__repr__ = __repr__
