"""Nodes that steps of a program make."""


def nodes_behind(operation, element_type, shape):
    """The model of what a function makes behind an input of this type and shape."""
    from carafe import Model, op

    parameter = op.Parameter(element_type, shape)
    made = operation(parameter.output(0))
    return Model([made], [parameter], "step")
