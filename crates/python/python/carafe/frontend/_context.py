"""A node of a file as a conversion sees it. Its inputs are stand-ins; the engine puts the values in their place."""

import numpy as np

from carafe._graph.model import Model
from carafe._graph.node import Node
from carafe._graph.ops import Constant, Parameter
from carafe._graph.ports import Output
from carafe._native import Type


class NodeContext:
    """The node that is being converted: its type, attributes and inputs."""

    def __init__(self, source):
        self._source, self._inputs, self._read = source, {}, set()

    def get_op_type(self, *_ignored):
        """Type of the node."""
        return self._source.op_type

    def get_name(self):
        """Name of the node."""
        return self._source.name

    def get_domain(self):
        """Domain of the type, for formats that have domains."""
        return self._source.domain

    def get_version(self):
        """Version of the opset that the model uses."""
        return self._source.version

    def get_output_size(self):
        """Number of outputs."""
        return self._source.n_outputs

    # Inputs.

    def _named(self, name):
        found = [i for i, port in enumerate(self._source.input_ports) if port == name]
        if not found:
            raise RuntimeError(f"the node has no input '{name}'; it has {', '.join(self._source.input_ports) or 'no names'}")
        return found

    def get_input_size(self, name=None):
        """Number of inputs, or of those of a named port."""
        if name is not None:
            return len([port for port in self._source.input_ports if port == name])
        return len(self._source.inputs)

    def has_input(self, index):
        """Whether an input is there; optional ones may be left out."""
        return index < len(self._source.inputs) and self._source.inputs[index] is not None

    def get_input(self, index, position=0):
        """An input by its index, or by the name of its port and its index there."""
        if isinstance(index, str):
            index = self._named(index)[position]
        if not self.has_input(index):
            raise RuntimeError(f"the node has no input {index}; it has {len(self._source.inputs)}")
        if index not in self._inputs:
            fact, constant = self._source.inputs[index], self._source.constants[index]
            node = Parameter(fact.element_type, fact.partial_shape) if constant is None else Constant(constant)
            node.set_friendly_name(f"carafe.input.{index}")
            self._inputs[index] = node
        return self._inputs[index].output(0)

    def get_values_from_const_input(self, idx, default_value=None, dtype=None):
        """Elements of an input that is a constant: a number for one, else an array; the default where it is left out."""
        if not self.has_input(idx):
            return default_value
        constant = self._source.constants[idx]
        if constant is None:
            raise RuntimeError(f"input {idx} of the node is no constant")
        values = np.array(constant.data)
        if dtype is not None:
            values = values.astype(_numpy_type(dtype))
        return values.item() if values.ndim == 0 or values.shape == (1,) else values

    # Attributes.

    def has_attribute(self, name):
        """Whether the node has the attribute."""
        self._read.add(name)
        return name in self._source.attributes

    def get_attribute(self, name, default_value=None, dtype=None):
        """An attribute; one that is not there is the default, or an error without one."""
        if not self.has_attribute(name):
            if default_value is None:
                have = ", ".join(sorted(self._source.attributes)) or "none"
                raise RuntimeError(f"the node has no attribute '{name}'; it has {have}")
            return default_value
        value = self._source.attributes[name]
        if dtype is not None:
            return [self._as(dtype, item) for item in value] if isinstance(value, (list, tuple)) else self._as(dtype, value)
        if isinstance(default_value, bool):
            return bool(value)
        if isinstance(default_value, (int, float)) and isinstance(value, (int, float)):
            return type(default_value)(value)
        return value

    # A number or text as another type; formats number element types.
    def _as(self, dtype, value):
        if dtype is Type:
            return self._source.types[value] if isinstance(value, int) else Type(value)
        if isinstance(dtype, type) and not issubclass(dtype, np.generic):
            return dtype(value)
        return np.array(value).astype(_numpy_type(dtype)).item()


def _numpy_type(dtype):
    return dtype.to_dtype() if hasattr(dtype, "to_dtype") else dtype


def _values(found):
    if isinstance(found, Node):
        return found.outputs()
    if isinstance(found, Output):
        return [found]
    return [value.output(0) if isinstance(value, Node) else value for value in found]


def run(convert, source):
    """Calls a conversion for a node. Called by the engine, which takes the nodes over into the model that it reads."""
    context = NodeContext(source)
    found = convert(context)
    ports = None
    if isinstance(found, dict):
        pairs = [(name, value) for name, values in found.items() for value in _values(values)]
        ports, values = [name for name, _ in pairs], [value for _, value in pairs]
    else:
        if found is None:
            raise TypeError("a conversion gives a list of outputs or a dictionary of such lists, found None")
        values = _values(found)
    for value in values:
        if not isinstance(value, Output):
            raise TypeError(f"a conversion gives outputs of nodes, found {type(value).__name__}")
    parameters = [node for node in context._inputs.values() if isinstance(node, Parameter)]
    return Model(values, parameters, "conversion")._engine(), ports, sorted(context._read)
