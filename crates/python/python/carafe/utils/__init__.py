"""Helpers for graphs: replacing nodes and outputs, postponed constants, and the submodules for factories."""

import os
from pathlib import Path

from .._graph.replace import replace_node, replace_output_update_name
from .postponed_constant import make_postponed_constant
from .decorators import classproperty, deprecated, deprecatedclassproperty


def numpy_to_c(array):
    """Address of the first element of an array."""
    return array.ctypes.data


def get_cmake_path():
    """Folder of `OpenVINOConfig.cmake` in the package; empty, since programs in C++ are not built against it."""
    for folder, _, files in os.walk(Path(__file__).parents[1]):
        if "OpenVINOConfig.cmake" in files:
            return folder
    return ""


__all__ = [
    "classproperty",
    "deprecated",
    "deprecatedclassproperty",
    "get_cmake_path",
    "make_postponed_constant",
    "numpy_to_c",
    "replace_node",
    "replace_output_update_name",
]
