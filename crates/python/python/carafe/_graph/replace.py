"""Replacing nodes and values by others."""

from .clock import touch
from .ports import Output, node_and_port


def replace_node(target, replacement, *more):
    """Lets all readers of a node read another one: `(target, node)`, `(target, outputs)` or `(target, node, order)`. Runtime
    information of the node goes along where the other one has none of that name."""
    if isinstance(replacement, (list, tuple)):
        values = [Output(*node_and_port(o)) for o in replacement]
    elif more:
        values = [replacement.output(port) for port in more[0]]
    else:
        values = replacement.outputs()
    if target._is_result and not getattr(replacement, "_is_result", True):
        raise RuntimeError("Result output replacement is not supported")
    if len(values) != target.get_output_size():
        raise RuntimeError(
            f"Target output size: {target.get_output_size()} must be equal replacement output size: {len(values)}"
        )
    for old, new in zip(target.outputs(), values):
        old.replace(new)
    touch()


def replace_output_update_name(output, target_output):
    """Lets readers of a value read the value it was made of, which takes over its names; whether that could be done."""
    node, index = output.get_node(), output.get_index()
    source, port = target_output.get_node(), target_output.get_index()
    has_result = any(t.get_node()._is_result for t in output.get_target_inputs())
    if has_result:
        from .ops import Parameter

        if isinstance(source, Parameter) or source.get_output_size() != 1:
            return False
        source.friendly_name = node.friendly_name
    names = output.get_names()
    for target in node._targets(index):
        target._node._connect(target._index, source, port)
    if names:
        source._set_names(port, source._get_names(port) | names)
    touch()
    return True
