# Written by scripts/python-opset-stubs.
from typing import Any

from ._graph.node import Node

def erfinv(node: Any, name: str | None = ...) -> Node: ...
def grouped_matmul(mat_a: Any, mat_b: Any, offsets: Any = ..., name: str | None = ...) -> Node: ...
