"""Nodes with methods of their own."""

from .._graph.control import if_op, loop, tensor_iterator
from .._graph.ops import Constant, Parameter, Result, assign, read_value
from . import util

__all__ = [
    "Constant",
    "Parameter",
    "Result",
    "assign",
    "if_op",
    "loop",
    "read_value",
    "tensor_iterator",
    "util",
]
