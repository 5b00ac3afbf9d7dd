"""Nodes that stand for the inputs and outputs of compiled models."""

import warnings

from carafe._graph.rt_info import RTMap


class PortRTMap(RTMap):
    """Runtime information of a port of a compiled model, which is not meant to change."""

    __slots__ = ()

    def __init__(self, of):
        self._items = of._items

    def __setitem__(self, key, value):
        self._warn()
        super().__setitem__(key, value)

    def __delitem__(self, key):
        self._warn()
        super().__delitem__(key)

    def _warn(self):
        text = "Setting rt_info via ConstOutput is deprecated: set that of the model before it is compiled"
        warnings.warn(text, DeprecationWarning, stacklevel=3)


def node_of(port):
    """For an input, a parameter with its type, shape and names; for an output, the result of the graph that really runs."""
    from carafe import op

    if port._is_input:
        node = op.Parameter(port.get_element_type(), port.get_partial_shape())
    else:
        node = port._runtime_model.get_results()[port._number]
    node.set_friendly_name(port._name)
    node.output(0).get_tensor().set_names(port.get_names())
    return node


def rt_info_of(port):
    """Runtime information of a port."""
    return PortRTMap(port.get_node().output(0).get_rt_info())
