"""Variables and descriptions of ports of bodies."""

from .._graph.descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    OutputDescription,
    SliceInputDescription,
)
from .._graph.variable import Variable, VariableInfo

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "OutputDescription",
    "SliceInputDescription",
    "Variable",
    "VariableInfo",
]
