"""A program with one mistake a function: `mypy --strict` must find each."""

import carafe as ov
from carafe import opset13 as ops


def no_such_type(compiled: ov.CompiledModel) -> int:
    return compiled.input(0).get_any_name()


def no_such_method(core: ov.Core) -> None:
    core.compile("net.xml")


def no_such_argument(model: ov.Model) -> None:
    ov.save_model(model, "net.xml", compress=False)


def no_node() -> ov.Node:
    return ops.relu(object())
