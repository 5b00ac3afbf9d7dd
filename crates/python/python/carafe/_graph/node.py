"""Nodes of a free graph. A node owns its operation and its edges to producers; readers are held weakly, so a graph lives as
long as somebody holds its ends. Types and shapes are inferred by the engine when a node is made or validated."""

import weakref

from . import engine
from .clock import touch
from .ports import Input, Output, node_and_port
from .rt_info import RTMap
from .type_info import DiscreteTypeInfo, type_info_of

_next_id = 0


def take_ids(count):
    """The first of so many numbers that no other node has."""
    global _next_id
    first = _next_id
    _next_id += count
    return first


# Failures of the engine with the words of OpenVINO that programs look for.
_WORDS = (("do not broadcast", "Argument shapes are inconsistent"), (" is outside of rank ", "Axis out of the tensor rank range"))


class Node:
    """An operation on values of other nodes."""

    _op = None

    def __init__(self, op, inputs=(), friendly_name=None):
        self._start(friendly_name)
        self._op = op
        self._inputs = [node_and_port(i) for i in inputs]
        self._attach()
        self._infer()

    # What every node has, before it has an operation.
    def _start(self, friendly_name=None):
        self._id = take_ids(1)
        self._friendly = friendly_name or None
        self._inputs = []
        self._facts = []
        self._names = {}
        self._rt = None
        self._out_rt = {}
        self._in_rt = {}
        self._said = {}
        self._users = {}

    def _attach(self):
        me = weakref.ref(self)
        for node, _ in self._inputs:
            node._users[me] = None

    def _connect(self, index, node, port):
        if not 0 <= port < len(node._facts):
            raise RuntimeError("node index is out of range")
        self._inputs[index] = (node, port)
        node._users[weakref.ref(self)] = None
        touch()

    def _infer(self):
        facts = [node._facts[port] for node, port in self._inputs]
        try:
            self._facts = self._op.infer(self.friendly_name, self._id, facts)
        except RuntimeError as error:
            for ours, theirs in _WORDS:
                if ours in str(error):
                    raise RuntimeError(f"{theirs}: {error}") from None
            raise

    def _targets(self, port):
        targets, dead = [], []
        for ref in self._users:
            user = ref()
            if user is None:
                dead.append(ref)
                continue
            for index, source in enumerate(user._inputs):
                if source[0] is self and source[1] == port:
                    targets.append(Input(user, index))
        for ref in dead:
            self._users.pop(ref, None)
        return targets

    # Names.

    def get_instance_id(self):
        """Number of the node; no other node has it."""
        return self._id

    def get_name(self):
        """Unique name: type and number."""
        return f"{self.get_type_name()}_{self._id}"

    def get_friendly_name(self):
        """The name that users see; the unique one unless it was set."""
        return self._friendly if self._friendly is not None else self.get_name()

    def set_friendly_name(self, name):
        """Sets the name that users see."""
        self._friendly = str(name)
        touch()

    name = property(get_name)
    friendly_name = property(get_friendly_name, set_friendly_name)

    def get_type_name(self):
        """Type of the operation, e.g. `Convolution`."""
        return self.get_type_info().name

    def get_type_info(self):
        """Type of the operation and the opset that it is of."""
        return type_info_of(self._op)

    @property
    def type_info(self):
        """Type of the operation and the opset that it is of."""
        return self.get_type_info()

    # Inputs.

    def _input_checked(self, index, message="node index is out of range"):
        if not 0 <= index < len(self._inputs):
            raise RuntimeError(message)
        return self._inputs[index]

    def get_input_size(self):
        """Number of inputs."""
        return len(self._inputs)

    def input(self, input_index):
        """One input."""
        self._input_checked(input_index)
        return Input(self, input_index)

    def inputs(self):
        """All inputs."""
        return [Input(self, i) for i in range(len(self._inputs))]

    def input_value(self, index):
        """The value that an input reads."""
        return Output(*self._input_checked(index))

    def input_values(self):
        """The values that the inputs read."""
        return [Output(node, port) for node, port in self._inputs]

    def get_input_element_type(self, index):
        """Element type of an input."""
        node, port = self._input_checked(index, f"index '{index}' out of range")
        return node.get_output_element_type(port)

    def get_input_partial_shape(self, index):
        """Shape of an input as far as it is known."""
        node, port = self._input_checked(index, f"index '{index}' out of range")
        return node.get_output_partial_shape(port)

    def get_input_shape(self, index):
        """Shape of an input, when all of it is known."""
        node, port = self._input_checked(index, f"index '{index}' out of range")
        return node.get_output_shape(port)

    def get_input_tensor(self, index):
        """What the graph says of the value that an input reads."""
        return self.input_value(index).get_tensor()

    def set_argument(self, index, argument):
        """Lets an input read this value."""
        node, port = node_and_port(argument)
        if index == len(self._inputs):
            self._inputs.append((node, port))
        self._connect(index, node, port)

    def set_arguments(self, arguments):
        """Lets the inputs read these values; a node stands for all of its outputs."""
        self._inputs = []
        for argument in arguments:
            outputs = argument.outputs() if isinstance(argument, Node) else [argument]
            self._inputs += [node_and_port(o) for o in outputs]
        self._attach()
        touch()

    # Outputs.

    def _fact(self, index, message=None):
        if not 0 <= index < len(self._facts):
            raise RuntimeError(message or f"index '{index}' out of range")
        return self._facts[index]

    def get_output_size(self):
        """Number of outputs."""
        return len(self._facts)

    def output(self, output_index):
        """One output."""
        self._fact(output_index, "node index is out of range")
        return Output(self, output_index)

    def outputs(self):
        """All outputs."""
        return [Output(self, i) for i in range(len(self._facts))]

    def get_output_element_type(self, index):
        """Element type of an output."""
        return self._fact(index).element_type

    def get_output_partial_shape(self, index):
        """Shape of an output as far as it is known."""
        return self._fact(index).partial_shape

    def get_output_shape(self, index):
        """Shape of an output, when all of it is known."""
        return self.get_output_partial_shape(index).to_shape()

    def get_output_tensor(self, index):
        """What the graph says of an output."""
        return self.output(index).get_tensor()

    def get_element_type(self):
        """Element type of the only output."""
        if len(self._facts) != 1:
            raise RuntimeError("get_element_type() must be called on a node with exactly one output.")
        return self.get_output_element_type(0)

    @property
    def shape(self):
        """Shape of the only output, when all of it is known."""
        if len(self._facts) != 1:
            raise RuntimeError("get_shape() must be called on a node with exactly one output.")
        return self.get_output_shape(0)

    def _get_names(self, index):
        names = set(self._names.get(index, ()))
        for target in self._targets(index):
            if target._node._is_result:
                names |= target._node._names.get(0, set())
        return names

    def _set_names(self, index, names):
        self._names[index] = {str(n) for n in names}
        touch()

    _is_result = False
    _postponed = False

    # Runtime information.

    def get_rt_info(self):
        """Runtime information of the node."""
        if self._rt is None:
            self._rt = RTMap()
        return self._rt

    def set_rt_info(self, value, key):
        """Adds an entry to the runtime information."""
        self.get_rt_info()[key] = value

    rt_info = property(get_rt_info)

    def _output_rt(self, index):
        return self._out_rt.setdefault(index, RTMap())

    # Attributes.

    def get_attributes(self):
        """Attributes of the operation by name."""
        return self._op.attributes()

    def set_attribute(self, name, value):
        """Sets one attribute; types and shapes follow at the next validation."""
        self._op = self._op.with_attribute(name, value)
        touch()

    def visit_attributes(self, visitor):
        """Shows all attributes to a visitor."""
        visitor.on_attributes(self.get_attributes())
        return True

    def __getattr__(self, name):
        # `get_axis()` and `set_axis(1)` for an attribute `axis`.
        if name[:4] in ("get_", "set_") and self._op is not None:
            attribute = self._op.attribute_name(name[4:])
            if attribute is not None and name.startswith("get_"):
                return lambda: self.get_attributes().get(attribute)
            if attribute is not None:
                return lambda value: self.set_attribute(attribute, value)
        raise AttributeError(f"'openvino.Node' object has no attribute '{name}'")

    # Validation and evaluation.

    def validate_and_infer_types(self):
        """Infers types and shapes of the outputs again."""
        self._infer()

    def constructor_validate_and_infer_types(self):
        """Checks the node that was just made and infers its outputs."""
        self.validate_and_infer_types()

    def set_output_size(self, size):
        """Sets how many outputs there are; for operations written in Python."""
        self._facts = (self._facts + [engine.unknown_fact()] * size)[:size]
        touch()

    def set_output_type(self, index, element_type, shape):
        """Says type and shape of an output; for operations written in Python."""
        if index >= len(self._facts):
            self.set_output_size(index + 1)
        self._facts[index] = engine.fact(element_type, shape)
        touch()

    def has_evaluate(self):
        """Whether the operation can be evaluated by itself."""
        return self._op is not None and self._op.has_evaluate()

    def evaluate(self, output_values, input_values, evaluation_context=None):
        """Computes the outputs from these inputs into these tensors; whether it could."""
        if not self.has_evaluate():
            return False
        results = self._op.evaluate(self.friendly_name, list(input_values))
        engine.fill(output_values, results)
        return True

    def clone_with_new_inputs(self, new_inputs):
        """The same operation on other values."""
        return self._copy([node_and_port(i) for i in new_inputs])

    copy_with_new_inputs = clone_with_new_inputs

    # A copy on other producers. What was inferred is taken over as it is.
    def _copy(self, inputs):
        copy = type(self).__new__(type(self))
        copy._start()
        copy._op = self._op
        copy._inputs = list(inputs)
        copy._attach()
        copy._infer()
        return copy

    def _copy_marks(self, source):
        self._friendly = source.friendly_name
        self._names = {port: set(names) for port, names in source._names.items()}
        self._rt = RTMap(source._rt.items()) if source._rt else None
        self._out_rt = {port: RTMap(info.items()) for port, info in source._out_rt.items()}
        self._in_rt = {port: RTMap(info.items()) for port, info in source._in_rt.items()}

    # Whether an entry of the engine may be this node after a pass.
    def _same_as(self, entry):
        op = self._op
        return op is not None and (op.type_name, op.opset) == (entry.op.type_name, entry.op.opset)

    # Becomes what the entry says.
    def _refresh(self, entry, nodes):
        self._op = entry.op
        self._inputs = [(nodes[number], port) for number, port in entry.inputs]
        self._attach()
        self._facts = list(entry.facts)

    # The operation for a model of the engine.
    def _engine_op(self):
        return self._op

    # Bodies: models by place; only nodes with sub-graphs have any.
    def _bodies(self):
        return []

    # Arithmetic.

    def __add__(self, right):
        return _binary("Add", self, right)

    def __radd__(self, left):
        return _binary("Add", left, self)

    def __sub__(self, right):
        return _binary("Subtract", self, right)

    def __rsub__(self, left):
        return _binary("Subtract", left, self)

    def __mul__(self, right):
        return _binary("Multiply", self, right)

    def __rmul__(self, left):
        return _binary("Multiply", left, self)

    def __truediv__(self, right):
        return _binary("Divide", self, right)

    def __rtruediv__(self, left):
        return _binary("Divide", left, self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        kind = _UFUNCS.get(ufunc.__name__)
        if kind is None or method != "__call__" or kwargs or len(inputs) != 2:
            raise TypeError(f"Unsupported ufunc {ufunc.__name__} for {type(self).__name__}")
        return _binary(kind, *inputs)

    def __repr__(self):
        shapes = [str(f.partial_shape) for f in self._facts]
        return f"<{self.get_type_name()}: '{self.friendly_name}' ({', '.join(shapes)})>"


_UFUNCS = {
    "add": "Add",
    "subtract": "Subtract",
    "multiply": "Multiply",
    "divide": "Divide",
    "true_divide": "Divide",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "less": "Less",
    "less_equal": "LessEqual",
    "equal": "Equal",
    "not_equal": "NotEqual",
    "power": "Power",
    "matmul": "MatMul",
}


def _binary(kind, left, right):
    from ..utils.types import as_node

    operands = []
    for value in (left, right):
        if not isinstance(value, (Node, int, float)) and not hasattr(value, "dtype"):
            return NotImplemented
        operands.append(as_node(value))
    return Node(engine.create_op(kind, "opset1", {}), operands)
