"""Nodes of Python for nodes of a model of the engine."""

from .control import if_op, loop, tensor_iterator
from .custom import of_python_node
from .node import Node
from .ops import Constant, Parameter, Result, assign, read_value
from .rt_info import port_info

_CLASSES = {
    "Parameter": Parameter,
    "Constant": Constant,
    "Result": Result,
    "Assign": assign,
    "ReadValue": read_value,
    "If": if_op,
    "Loop": loop,
    "TensorIterator": tensor_iterator,
}


def class_of(type_name):
    """The class of nodes of this type."""
    return _CLASSES.get(type_name, Node)


def node_of(entry, nodes):
    """The node of an entry; `nodes` are those that were made before, by number."""
    inputs = [(nodes[number], port) for number, port in entry.inputs]
    written = entry.op.python_node()
    if written is not None:
        node = of_python_node(written, inputs)
    else:
        kind = class_of(entry.op.type_name)
        node = kind.__new__(kind)
        node._start()
        node._op = entry.op
        node._inputs = inputs
        node._attach()
    node._facts = list(entry.facts)
    node._id = entry.instance
    mark(node, entry)
    if hasattr(node, "_restore"):
        node._restore(entry)
    return node


def mark(node, entry):
    """Name, tensor names and runtime information of an entry."""
    node._friendly = entry.name
    node._names = {port: set(names) for port, names in entry.names}
    node._rt = port_info(entry.info) if entry.info is not None else None
    node._out_rt = {port: port_info(info) for port, info in entry.output_info}
    node._in_rt = {port: port_info(info) for port, info in entry.input_info}
