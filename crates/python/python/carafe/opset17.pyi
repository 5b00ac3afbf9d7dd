# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput

def erfinv(node: NodeInput, name: str | None = ...) -> Node: ...
def grouped_matmul(mat_a: NodeInput, mat_b: NodeInput, offsets: NodeInput | None = ..., name: str | None = ...) -> Node: ...
