"""Helpers for graphs: replacing nodes and outputs, postponed constants, and the submodules for factories."""

from .._graph.replace import replace_node, replace_output_update_name
from .postponed_constant import make_postponed_constant
from .decorators import classproperty, deprecated, deprecatedclassproperty


def numpy_to_c(array):
    """Address of the first element of an array."""
    return array.ctypes.data


__all__ = [
    "classproperty",
    "deprecated",
    "deprecatedclassproperty",
    "make_postponed_constant",
    "numpy_to_c",
    "replace_node",
    "replace_output_update_name",
]
