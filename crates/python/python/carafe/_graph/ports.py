"""Ends of edges: `Output` is a value that a node gives, `Input` a place where a node reads one."""

from .clock import touch
from .rt_info import RTMap


def node_and_port(value):
    """The producer and number of what may be an `Output`, or a node with one output."""
    if isinstance(value, Output):
        return value._node, value._index
    from .node import Node

    if isinstance(value, Node):
        if value.get_output_size() != 1:
            raise RuntimeError(f"{value!r} has {value.get_output_size()} outputs: say which one with .output(i)")
        return value, 0
    raise TypeError(f"expected a node or an output, found {type(value).__name__}")


def _named(names):
    return "" if not names else ", ".join(sorted(names))


class DescriptorTensor:
    """What a graph says of a value: names, element type and shape."""

    def __init__(self, node, index):
        self._node, self._index = node, index

    def get_names(self):
        """Names of the tensor."""
        return self._node._get_names(self._index)

    def set_names(self, names):
        """Gives it these names and no others."""
        self._node._set_names(self._index, set(names))

    def add_names(self, names):
        """Gives it further names."""
        self._node._set_names(self._index, self.get_names() | set(names))

    def get_any_name(self):
        """One of the names, the first in order of letters."""
        names = self.get_names()
        if not names:
            raise RuntimeError("Attempt to get a name for a Tensor without names")
        return min(names)

    def get_element_type(self):
        """Element type."""
        return self._node.get_output_element_type(self._index)

    def get_partial_shape(self):
        """Shape as far as it is known."""
        return self._node.get_output_partial_shape(self._index)

    def get_shape(self):
        """Shape, when all of it is known."""
        return self._node.get_output_shape(self._index)

    def get_rt_info(self):
        """Runtime information of the tensor."""
        return self._node._output_rt(self._index)

    def _said(self):
        return self._node._said.setdefault(self._index, {})

    def get_lower_value(self):
        """Least elements, where somebody said them."""
        return self._said().get("lower")

    def set_lower_value(self, value):
        """Says the least elements."""
        self._said()["lower"] = value

    def get_upper_value(self):
        """Greatest elements, where somebody said them."""
        return self._said().get("upper")

    def set_upper_value(self, value):
        """Says the greatest elements."""
        self._said()["upper"] = value

    def get_value_symbol(self):
        """Symbols of the elements, where somebody said them."""
        return list(self._said().get("symbols", []))

    def set_value_symbol(self, value_symbol):
        """Says the symbols of the elements."""
        self._said()["symbols"] = list(value_symbol)

    def get_size(self):
        """Bytes of the tensor, when its shape is known."""
        count = 1
        for d in self.get_shape():
            count *= d
        return (count * self.get_element_type().bitwidth + 7) // 8

    names = property(get_names, set_names)
    any_name = property(get_any_name)
    element_type = property(get_element_type)
    partial_shape = property(get_partial_shape)
    shape = property(get_shape)
    rt_info = property(get_rt_info)
    size = property(get_size)
    lower_value = property(get_lower_value, set_lower_value)
    upper_value = property(get_upper_value, set_upper_value)
    value_symbol = property(get_value_symbol, set_value_symbol)

    def __repr__(self):
        return (
            f"<DescriptorTensor: names[{_named(self.get_names())}] shape{self.get_partial_shape()} "
            f"type: {self.get_element_type().get_type_name()}>"
        )


class Output:
    """One output of one node."""

    def __init__(self, node, index=0):
        self._node, self._index = node, index

    @staticmethod
    def _from_node(node):
        return node.output(0)

    def get_node(self):
        """The node that gives the value."""
        return self._node

    def get_index(self):
        """Number among the outputs of the node."""
        return self._index

    def get_names(self):
        """Names of the tensor."""
        return self._node._get_names(self._index)

    def set_names(self, names):
        """Gives the tensor these names and no others."""
        self._node._set_names(self._index, set(names))

    def add_names(self, names):
        """Gives the tensor further names."""
        self._node._set_names(self._index, self.get_names() | set(names))

    def get_any_name(self):
        """One of the names, the first in order of letters."""
        return self.get_tensor().get_any_name()

    def get_element_type(self):
        """Element type."""
        return self._node.get_output_element_type(self._index)

    def get_partial_shape(self):
        """Shape as far as it is known."""
        return self._node.get_output_partial_shape(self._index)

    def get_shape(self):
        """Shape, when all of it is known."""
        return self._node.get_output_shape(self._index)

    def get_tensor(self):
        """Names, element type and shape as one object."""
        return DescriptorTensor(self._node, self._index)

    def get_target_inputs(self):
        """Inputs that read the value."""
        return set(self._node._targets(self._index))

    def remove_target_input(self, target_input):
        """Takes one reader away."""
        node, index = target_input._node, target_input._index
        if index >= len(node._inputs) or node._inputs[index] != (self._node, self._index):
            raise RuntimeError("the input does not read this output")
        del node._inputs[index]
        touch()

    def replace(self, replacement):
        """Lets all readers of this value read another one; names and the friendly name go along."""
        node, index = node_and_port(replacement)
        for target in self._node._targets(self._index):
            # The replacement may read the value itself; it goes on doing so.
            if target._node is not node:
                target._node._connect(target._index, node, index)
        if node is self._node and index == self._index:
            return
        names = self.get_names()
        if names:
            node._set_names(index, node._get_names(index) | names)
        touch()

    def get_rt_info(self):
        """Runtime information of the output."""
        return self._node._output_rt(self._index)

    def set_rt_info(self, value, key):
        """Adds an entry to the runtime information."""
        self.get_rt_info()[key] = value

    node = property(get_node)
    index = property(get_index)
    names = property(get_names, set_names)
    any_name = property(get_any_name)
    element_type = property(get_element_type)
    partial_shape = property(get_partial_shape)
    shape = property(get_shape)
    tensor = property(get_tensor)
    target_inputs = property(get_target_inputs)
    rt_info = property(get_rt_info)

    def _key(self):
        return (self._node.get_instance_id(), self._index)

    def __eq__(self, other):
        if not isinstance(other, Output):
            return NotImplemented
        return self._node is other._node and self._index == other._index

    def __hash__(self):
        return hash((id(self._node), self._index))

    def __lt__(self, other):
        return self._key() < other._key()

    def __le__(self, other):
        return self._key() <= other._key()

    def __gt__(self, other):
        return self._key() > other._key()

    def __ge__(self, other):
        return self._key() >= other._key()

    def __copy__(self):
        return Output(self._node, self._index)

    def __deepcopy__(self, memo):
        raise TypeError("Cannot deepcopy 'openvino.Output' object.")

    def __repr__(self):
        return (
            f"<Output: names[{_named(self.get_names())}] shape{self.get_partial_shape()} "
            f"type: {self.get_element_type().get_type_name()}>"
        )


class Input:
    """One input of one node."""

    __slots__ = ("_node", "_index", "__weakref__")

    def __init__(self, node, index):
        self._node, self._index = node, index

    def get_node(self):
        """The node that reads."""
        return self._node

    def get_index(self):
        """Number among the inputs of the node."""
        return self._index

    def get_source_output(self):
        """The value that is read."""
        return Output(*self._node._inputs[self._index])

    def replace_source_output(self, new_source_output):
        """Reads another value from now on."""
        self._node._connect(self._index, *node_and_port(new_source_output))

    def get_element_type(self):
        """Element type."""
        return self.get_source_output().get_element_type()

    def get_partial_shape(self):
        """Shape as far as it is known."""
        return self.get_source_output().get_partial_shape()

    def get_shape(self):
        """Shape, when all of it is known."""
        return self.get_source_output().get_shape()

    def get_tensor(self):
        """Names, element type and shape of what is read, as one object."""
        return self.get_source_output().get_tensor()

    def get_rt_info(self):
        """Runtime information of the input."""
        return self._node._in_rt.setdefault(self._index, RTMap())

    def set_rt_info(self, value, key):
        """Adds an entry to the runtime information."""
        self.get_rt_info()[key] = value

    rt_info = property(get_rt_info)

    def __eq__(self, other):
        if not isinstance(other, Input):
            return NotImplemented
        return self._node is other._node and self._index == other._index

    def __hash__(self):
        return hash((id(self._node), ~self._index))

    def __lt__(self, other):
        return (self._node.get_instance_id(), self._index) < (other._node.get_instance_id(), other._index)

    def __repr__(self):
        return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type().get_type_name()}>"
