"""Nodes with methods of their own: Parameter, Constant, Result, and those of variables."""

import numpy as np

from .._values import Shape, Strides
from . import engine
from .clock import touch
from .layout import get_layout, set_layout
from .node import Node
from .ports import node_and_port
from .type_info import DiscreteTypeInfo
from .variable import Variable, VariableInfo


class Parameter(Node):
    """Input of a model or of a body."""

    def __init__(self, element_type, shape):
        if not isinstance(element_type, engine.Type):
            raise TypeError(f"Parameter takes a Type and a shape, found {type(element_type).__name__}")
        attributes = {"element_type": element_type, "shape": engine.PartialShape(shape)}
        super().__init__(engine.create_op("Parameter", "opset1", attributes))

    # Symbols that a user gave dimensions stay; others get one of this node.
    def _infer(self):
        super()._infer()
        declared = self.get_partial_shape()
        if declared.is_dynamic and declared.rank.is_static and any(d.has_symbol() for d in declared):
            found = self._facts[0].partial_shape
            for axis, dim in enumerate(declared):
                if dim.has_symbol():
                    found[axis] = dim
            self._facts = [engine.fact(self._facts[0].element_type, found)]

    def get_element_type(self):
        """Element type that a caller gives."""
        return engine.Type(self._op.attributes()["element_type"])

    def set_element_type(self, element_type):
        """Sets the element type; the graph follows at its next validation."""
        self.set_attribute("element_type", element_type)

    def get_partial_shape(self):
        """Shape that a caller gives."""
        return engine.PartialShape(self._op.attributes()["shape"])

    def set_partial_shape(self, partial_shape):
        """Sets the shape; the graph follows at its next validation."""
        self.set_attribute("shape", engine.PartialShape(partial_shape))

    def get_layout(self):
        """What the axes mean."""
        return get_layout(self.output(0))

    def set_layout(self, layout):
        """Says what the axes mean."""
        set_layout(self.output(0), layout)

    element_type = property(get_element_type, set_element_type)
    partial_shape = property(get_partial_shape, set_partial_shape)
    layout = property(get_layout, set_layout)

    def __repr__(self):
        kind = {"f32": "float", "f64": "double"}.get(self.get_element_type().get_type_name())
        kind = kind or repr(self.get_element_type()).split("'")[1]
        return f"<Parameter: '{self.friendly_name}' ({self.get_output_partial_shape(0)}, {kind})>"


class Result(Node):
    """Output of a model or of a body."""

    _is_result = True

    def __init__(self, value):
        super().__init__(engine.create_op("Result", "opset1", {}), [value])

    def _get_names(self, index):
        own = self._names.get(0)
        if own:
            return set(own)
        source, port = self._inputs[0]
        return set(source._names.get(port, ()))

    def get_layout(self):
        """What the axes mean."""
        return get_layout(self.output(0))

    def set_layout(self, layout):
        """Says what the axes mean."""
        set_layout(self.output(0), layout)

    layout = property(get_layout, set_layout)


_PACKED = {"u1", "u2", "u3", "i4", "u4", "u6", "nf4", "f4e2m1", "i2"}


class Constant(Node):
    """A tensor stored in the graph."""

    def __init__(self, *args, shared_memory=None, array=None, tensor=None):
        first = array if array is not None else tensor
        args = (first, *args) if first is not None else args
        if len(args) == 3 and isinstance(args[0], engine.Type):
            stored = _from_values(*args)
        elif len(args) == 3 and not isinstance(args[0], (np.ndarray, engine.Tensor)):
            raise TypeError("Constant takes a Type, a shape and values, or an array, or a Tensor")
        elif args and isinstance(args[0], engine.Tensor):
            shared = args[1] if len(args) > 1 else shared_memory
            stored = args[0] if shared is None or shared else _copied(args[0])
        elif args and isinstance(args[0], np.ndarray):
            shared = args[1] if len(args) > 1 else bool(shared_memory)
            stored = _from_array(args[0], shared)
        else:
            raise TypeError("Constant takes a Type, a shape and values, or an array, or a Tensor")
        self._stored = stored
        super().__init__(engine.GraphOp.constant(stored))

    # The tensor as an object, made when it is first asked for.
    def _tensor(self):
        if getattr(self, "_stored", None) is None:
            self._stored = self._op.tensor
        return self._stored

    def _copy(self, inputs):
        copy = super()._copy(inputs)
        copy._stored = getattr(self, "_stored", None)
        return copy

    def _same_as(self, entry):
        return self._op.same_as(entry.op)

    def get_attributes(self):
        """Element type and shape."""
        return {"element_type": self.get_element_type().get_type_name(), "shape": list(self.get_output_shape(0))}

    @property
    def data(self):
        """The elements as an array over the memory of the constant; packed types as bytes."""
        return self.get_data()

    def get_data(self, *, dtype=None, copy=False):
        """The elements as an array, converted or copied on demand."""
        tensor = self._tensor()
        kind = self.get_element_type().get_type_name()
        if kind == "bf16" and (dtype is None or np.dtype(dtype) == np.float16):
            # NumPy has no such type: the bits are those of bf16.
            bits = tensor.data.view(np.float16)
            return np.array(bits) if copy else _read_only(bits)
        if dtype is not None and kind in _PACKED | {"bf16", "f8e4m3", "f8e5m2", "f8e8m0"}:
            wanted = engine.Type(dtype)
            convert = engine.create_op("Convert", "opset1", {"destination_type": wanted})
            return np.array(convert.evaluate("", [tensor])[0].data)
        if kind == "string":
            return np.array(tensor.str_data if dtype is None or np.dtype(dtype).kind == "U" else tensor.bytes_data)
        data = tensor.data
        if dtype is not None and data.dtype != np.dtype(dtype):
            return data.astype(dtype)
        return np.array(data) if copy else _read_only(data)

    def get_vector(self):
        """The elements in one row."""
        return np.array(self.get_data()).reshape(-1)

    def get_value_strings(self):
        """The elements as texts."""
        kind = self.get_element_type().get_type_name()
        data = self.get_data() if kind not in _PACKED | {"bf16"} else self.get_data(dtype=np.float32)
        flat = data.reshape(-1)
        return ["%g" % v if flat.dtype.kind == "f" else str(int(v) if flat.dtype.kind == "b" else v) for v in flat]

    def get_byte_size(self):
        """Bytes of the tensor."""
        return self._tensor().byte_size

    def get_strides(self):
        """Steps along the axes, in bytes."""
        return Strides(self._tensor().strides)

    def get_tensor_view(self):
        """The tensor itself."""
        return self._tensor()

    strides = property(get_strides)
    tensor_view = property(get_tensor_view)


def _read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view


def _copied(tensor):
    copy = engine.Tensor(tensor.element_type, Shape(tensor.shape))
    tensor.copy_to(copy)
    return copy


def _from_array(array, shared):
    if array.dtype.kind in "USO":
        return engine.Tensor(array)
    if not shared:
        return engine.Tensor(np.array(array, order="C"))
    if not array.flags.c_contiguous:
        text = "SHARED MEMORY MODE FOR THIS CONSTANT IS NOT APPLICABLE! Passed numpy array must be C contiguous."
        raise RuntimeError(text)
    return engine.Tensor(array, shared_memory=True)


def _from_values(element_type, shape, values):
    shape = Shape(shape)
    kind = element_type.get_type_name()
    count = int(np.prod(shape, dtype=np.int64)) if len(shape) else 1
    if isinstance(values, np.ndarray):
        values = values.reshape(-1).tolist()
    values = list(values)
    if len(values) not in (1, count):
        raise RuntimeError(f"Did not get the expected number of literals for a constant of shape {shape}: {len(values)}")
    if kind == "string":
        texts = values * count if len(values) == 1 else values
        return engine.Tensor(np.array(texts, dtype=object).reshape(shape))
    whole = all(isinstance(v, (int, bool, np.integer, np.bool_)) for v in values)
    source = np.array(values, dtype=np.int64 if whole and _fits(values, np.int64) else np.uint64 if whole else np.float64)
    source = np.broadcast_to(source if len(values) != 1 else source[0], [count]).reshape(shape)
    dtype = np.dtype(element_type.to_dtype()) if kind not in _PACKED | {"bf16", "f8e4m3", "f8e5m2", "f8e8m0"} else None
    if dtype is not None:
        return engine.Tensor(np.array(source.astype(dtype), order="C"))
    if kind == "nf4" and whole:
        # Whole numbers are codes, not values.
        codes = np.pad(source.reshape(-1).astype(np.uint8), (0, count % 2)).reshape(-1, 2)
        return engine.Tensor(codes[:, 0] | (codes[:, 1] << 4), shape, element_type)
    source = source.astype(np.float32) if not whole else source
    convert = engine.create_op("Convert", "opset1", {"destination_type": element_type})
    return convert.evaluate("", [engine.Tensor(np.array(source, order="C"))])[0]


def _fits(values, dtype):
    limits = np.iinfo(dtype)
    return all(limits.min <= v <= limits.max for v in values)


class _OfVariable(Node):
    _variable = None
    _kind = ""

    # Without arguments: a node that gets them later.
    def _later(self, name):
        self._start(name)
        self._facts = [engine.unknown_fact()]

    def get_type_info(self):
        """Type of the operation and the opset that it is of."""
        return DiscreteTypeInfo(self._kind, "opset6") if self._op is None else super().get_type_info()

    def get_variable_id(self):
        """Id of the variable."""
        return self._variable.info.variable_id

    def get_variable(self):
        """The variable."""
        return self._variable

    def _copy(self, inputs):
        copy = super()._copy(inputs)
        copy._variable = self._variable
        return copy

    def _restore(self, entry):
        attributes = self._op.attributes()
        info = VariableInfo()
        info.variable_id = attributes["variable_id"]
        if attributes.get("variable_type"):
            info.data_type = engine.Type(attributes["variable_type"])
            info.data_shape = engine.PartialShape(attributes["variable_shape"])
        else:
            info.data_type = self._facts[0].element_type
            info.data_shape = self._facts[0].partial_shape
        self._variable = Variable(info)


class assign(_OfVariable):  # noqa: N801
    """Sets a variable."""

    _kind = "Assign"

    def __init__(self, new_value=None, variable=None, name="", *, variable_id=None):
        if new_value is None:
            self._later(name)
            return
        variable = variable if variable is not None else variable_id
        if isinstance(variable, str):
            variable = Variable(VariableInfo(variable))
        self._variable = variable
        op = engine.create_op("Assign", "opset6", {"variable_id": variable.info.variable_id})
        super().__init__(op, [node_and_node(new_value)], name)


class read_value(_OfVariable):  # noqa: N801
    """Gives what a variable holds."""

    _kind = "ReadValue"

    def __init__(self, *args, new_value=None, variable=None, name=""):
        args = list(args)
        if not args and variable is None:
            self._later(name)
            return
        if args and isinstance(args[-1], str) and len(args) > 1:
            name = args.pop()
        if variable is None:
            variable = args.pop()
        if new_value is None and args:
            new_value = args.pop()
        self._variable = variable
        super().__init__(self._make(), [] if new_value is None else [node_and_node(new_value)], name)

    def _make(self):
        info = self._variable.info
        shape, kind = info.data_shape, info.data_type
        attributes = {"variable_id": info.variable_id, "variable_type": kind, "variable_shape": shape}
        return engine.create_op("ReadValue", "opset6", attributes)

    def validate_and_infer_types(self):
        """Infers type and shape again, from the variable too."""
        self._op = self._make()
        super().validate_and_infer_types()
        touch()


def node_and_node(value):
    """A value for an input: a node, an output, or numbers as a constant."""
    from ..utils.types import as_node

    value = as_node(value)
    node_and_port(value)
    return value
