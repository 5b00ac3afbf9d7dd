"""Operations that are written in Python: subclasses of `Op`."""

from . import engine
from .clock import touch
from .node import Node
from .ports import Output
from .type_info import DiscreteTypeInfo


def _is_plain_array(value):
    """Whether a value is an array of numbers that a list of attributes can hold."""
    return getattr(getattr(value, "dtype", None), "kind", "") in tuple("biuf") and hasattr(value, "tolist")


class AttributeVisitor:
    """Collects the attributes that an operation shows."""

    def __init__(self):
        self.attributes = {}

    def on_attributes(self, attributes):
        """Shows attributes by name."""
        if attributes:
            # As in OpenVINO, the operation then has lists too.
            attributes.update({name: value.tolist() for name, value in attributes.items() if _is_plain_array(value)})
            self.attributes.update(attributes)


class Op(Node):
    """An operation of one's own: a subclass says types and shapes, and may evaluate."""

    # Why the operation cannot be written to a file.
    _unwritable = None

    def __init__(self, py_obj=None, inputs=None):
        self._start()
        if isinstance(inputs, tuple):
            inputs = list(inputs) or None
            if inputs is not None and len(inputs) == 1 and isinstance(inputs[0], list):
                inputs = inputs[0]
        if isinstance(inputs, (Node, Output)):
            inputs = [inputs]
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def get_type_info(self):
        """Type of the operation: `class_type_info`, or the name of the class."""
        info = getattr(type(self), "class_type_info", None)
        return info if info is not None else DiscreteTypeInfo(type(self).__name__, "extension")

    def validate_and_infer_types(self):
        """Says types and shapes of the outputs by `set_output_type`."""

    def _infer(self):
        self.validate_and_infer_types()

    def visit_attributes(self, visitor):
        """Shows attributes by `visitor.on_attributes`."""
        return True

    def get_attributes(self):
        """Attributes that the operation shows."""
        visitor = AttributeVisitor()
        self.visit_attributes(visitor)
        return visitor.attributes

    def set_attribute(self, name, value):
        """Sets an attribute that the operation shows."""
        attributes = self.get_attributes()
        if name not in attributes:
            raise TypeError(f"{type(self).__name__} has no attribute '{name}'")
        attributes[name] = value
        touch()

    def has_evaluate(self):
        """Whether `evaluate` is written."""
        return False

    def evaluate(self, output_values, input_values, evaluation_context=None):
        """Computes the outputs; whether it did."""
        return False

    def clone_with_new_inputs(self, new_inputs):
        """The same operation on other values."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._start()
        copy.set_arguments(new_inputs)
        copy.constructor_validate_and_infer_types()
        return copy

    def _copy(self, inputs):
        return self.clone_with_new_inputs([Output(node, port) for node, port in inputs])

    def _same_as(self, entry):
        return type(entry.op.python_node()) is type(self)

    def _refresh(self, entry, nodes):
        super()._refresh(entry, nodes)
        self._op = None

    def _engine_op(self):
        info = self.get_type_info()
        make = lambda shown: engine.python_op(self, info.name, info.version_id, shown, type(self).evaluate is not Op.evaluate)  # noqa: E731
        try:
            made, self._unwritable = make(self.get_attributes()), None
        except TypeError as error:
            # It runs all the same: only files need attributes.
            made, self._unwritable = make({}), error
        return made


def of_python_node(written, inputs):
    """A copy of a node that is written in Python, on other inputs."""
    return written._copy(inputs)


def _on_values(node, facts):
    from .ops import Parameter

    values = []
    for fact in facts:
        value = Parameter.__new__(Parameter)
        value._start()
        value._op = engine.create_op(
            "Parameter", "opset1", {"element_type": fact.element_type, "shape": fact.partial_shape}
        )
        value._facts = [fact]
        values.append(value)
    return node.clone_with_new_inputs([Output(v, 0) for v in values])


def infer(node, facts):
    """Types and shapes of the outputs for these inputs. Called by the engine."""
    return list(_on_values(node, facts)._facts)


def evaluate(node, tensors):
    """Outputs for these inputs. Called by the engine."""
    exact = _on_values(node, [engine.fact(t.element_type, t.shape) for t in tensors])
    outputs = []
    for fact in exact._facts:
        shape = fact.partial_shape
        outputs.append(engine.Tensor(fact.element_type, shape.to_shape() if shape.is_static else [0]))
    if not exact.evaluate(outputs, list(tensors)):
        raise RuntimeError(f"{node.get_type_name()} '{node.friendly_name}' could not be evaluated")
    return outputs
