# Written by scripts/python-opset-stubs.
from typing import Any

from ._graph.node import Node
from .opset10 import *  # noqa: F403

def interpolate(image: Any, scales_or_sizes: Any, mode: Any, shape_calculation_mode: Any, pads_begin: Any = ..., pads_end: Any = ..., coordinate_transformation_mode: str = ..., nearest_mode: str = ..., antialias: bool = ..., cube_coeff: float = ..., axes: Any = ..., name: str | None = ...) -> Node: ...
def topk(data: Any, k: Any, axis: Any, mode: Any, sort: Any, index_element_type: str = ..., stable: bool = ..., name: str | None = ...) -> Node: ...
