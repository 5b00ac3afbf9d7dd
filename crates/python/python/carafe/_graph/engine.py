"""The few doors of the engine that the graph layer goes through."""

from carafe._native import (
    EngineModel,
    GraphFact,
    GraphOp,
    ModelBuilder,
    PartialShape,
    Tensor,
    Type,
    python_op,
    run_pass,
)

__all__ = [
    "EngineModel",
    "GraphFact",
    "GraphOp",
    "ModelBuilder",
    "PartialShape",
    "Tensor",
    "Type",
    "create_op",
    "fact",
    "fill",
    "python_op",
    "run_pass",
    "unknown_fact",
]

create_op = GraphOp.create
unknown_fact = GraphFact.unknown
fact = GraphFact


def fill(targets, results):
    """Puts results into the tensors that a caller gave for them."""
    if len(targets) != len(results):
        raise RuntimeError(f"{len(results)} output tensors are expected, found {len(targets)}")
    for target, result in zip(targets, results):
        if list(target.shape) != list(result.shape):
            target.shape = result.shape
        result.copy_to(target)
