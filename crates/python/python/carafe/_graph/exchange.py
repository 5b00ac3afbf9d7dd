"""Models between the engine and the free graph."""

from . import engine
from .make import mark, node_of
from .node import take_ids
from .rt_info import engine_info, tree_of


def expand(model, native):
    """Makes the nodes of a model of the engine."""
    nodes = {}
    for entry in native.nodes(take_ids(len(native))):
        nodes[entry.id] = node_of(entry, nodes)
    _set_ends(model, native, nodes)
    shared = {}
    for node in nodes.values():
        variable = getattr(node, "_variable", None)
        if variable is not None:
            node._variable = shared.setdefault(variable.info.variable_id, variable)
    model._variables = list(shared.values())


def take_over(model, native, ends=False):
    """Makes the nodes of what a pass made of a model; those that are still there by name and type stay the same objects.
    With `ends`, inputs and outputs take names and runtime information over too."""
    old = {node.friendly_name: node for node in model.get_ordered_ops()}
    nodes = {}
    for entry in native.nodes(take_ids(len(native))):
        node = old.get(entry.name)
        if node is not None and node._same_as(entry):
            node._refresh(entry, nodes)
            if ends and entry.op.type_name in ("Parameter", "Result"):
                mark(node, entry)
        else:
            node = node_of(entry, nodes)
        nodes[entry.id] = node
    _set_ends(model, native, nodes)


def _set_ends(model, native, nodes):
    parameters, results, sinks = native.ends()
    model._parameters = [nodes[i] for i in parameters]
    model._results = [nodes[i] for i in results]
    model._sinks = [nodes[i] for i in sinks]


def to_engine(model):
    """A model of the engine with the nodes of a free graph."""
    builder = engine.ModelBuilder(model.friendly_name)
    numbers = {}
    for node in model.get_ordered_ops():
        numbers[node] = builder.add(
            node._engine_op(),
            node.friendly_name,
            [(numbers[source], port) for source, port in node._inputs],
            [(port, sorted(names)) for port, names in node._names.items() if names],
            engine_info(node._rt) if node._rt else None,
            [(port, *engine_info(info)) for port, info in node._out_rt.items() if info],
            [(port, *engine_info(info)) for port, info in node._in_rt.items() if info],
        )
    ends = ([numbers[p] for p in model._parameters], [numbers[r] for r in model._results])
    return builder.finish(*ends, tree_of(model._rt))
