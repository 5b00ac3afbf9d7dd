"""Numbers, arrays and types of Python as constants and element types."""

import logging
from typing import Union

import numpy as np

from .._graph import engine
from .._graph.node import Node
from .._graph.ops import Constant
from .._graph.ports import Output
from ..exceptions import OVTypeError

log = logging.getLogger(__name__)

TensorShape = list[int]
NumericData = Union[int, float, np.ndarray]
NumericType = Union[type, np.dtype]
ScalarData = Union[int, float]
NodeInput = Union[Node, int, float, np.ndarray]

_PLAIN = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
_LONG = {"f": "float", "i": "int", "u": "uint"}
_KINDS = [("boolean", bool), ("boolean", np.bool_)]
_KINDS += [(short, getattr(np, _LONG[short[0]] + short[1:])) for short in _PLAIN]
_KINDS += [("string", str), ("string", np.str_), ("string", bytes), ("string", np.bytes_)]

openvino_to_numpy_types_map = [(engine.Type(name), kind) for name, kind in _KINDS]
openvino_to_numpy_types_str_map = list(_KINDS)


def get_element_type_str(data_type):
    """Name of the element type that a type of Python or NumPy is."""
    if data_type is int or data_type is float:
        name = "i32" if data_type is int else "f32"
        log.warning("%s of Python has no width: it is taken as %s", data_type.__name__, name)
        return name
    for name, kind in _KINDS:
        if kind == data_type:
            return name
    if isinstance(data_type, np.dtype) and data_type.kind in "US":
        return "string"
    raise OVTypeError("Unidentified data type %s", data_type)


def get_element_type(data_type):
    """The element type that a type of Python or NumPy is."""
    return engine.Type(get_element_type_str(data_type))


def get_numpy_ctype(openvino_type):
    """The type of NumPy that an element type is."""
    for kind, found in openvino_to_numpy_types_map:
        if kind == openvino_type:
            return found
    if openvino_type == engine.Type("bf16"):
        return np.uint16
    raise OVTypeError("Unidentified data type %s", openvino_type)


def get_dtype(openvino_type):
    """The dtype of NumPy that an element type is."""
    return np.dtype(get_numpy_ctype(openvino_type))


def get_ndarray(data):
    """Data as an array."""
    return data if isinstance(data, np.ndarray) else np.array(data)


def get_shape(data):
    """Shape of an array, a list or a number."""
    if isinstance(data, np.ndarray):
        return data.shape
    return [len(data)] if isinstance(data, list) else []


def make_constant_node(value, dtype=None, *, name=None):
    """A constant of an array or a number, converted where a type is given."""
    array = get_ndarray(value)
    if array.dtype == object:
        raise ValueError(f"{type(value).__name__} is neither a number nor an array")
    if dtype is None:
        kind = get_element_type(array.dtype)
    else:
        kind = get_element_type(dtype) if isinstance(dtype, (type, np.dtype)) else engine.Type(dtype)
    constant = Constant(kind, list(array.shape), array)
    if name:
        constant.friendly_name = f"{name}/{constant.friendly_name}"
    return constant


def as_node(input_value, name=None):
    """A node or an output as it is, anything else as a constant."""
    if isinstance(input_value, (Node, Output)):
        return input_value
    return make_constant_node(input_value, name=name)


def as_nodes(*input_values, name=None):
    """Each of them as a node or an output."""
    return [as_node(value, name=name) for value in input_values]
