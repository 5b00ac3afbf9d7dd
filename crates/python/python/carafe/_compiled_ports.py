"""Nodes that stand for the inputs and outputs of compiled models."""


def node_of(port):
    """A parameter with type, shape and names of the port; for an output, a result behind one."""
    from carafe import op

    parameter = op.Parameter(port.get_element_type(), port.get_partial_shape())
    node = parameter if port._is_input else op.Result(parameter.output(0))
    node.set_friendly_name(port._name)
    node.output(0).get_tensor().set_names(port.get_names())
    return node
