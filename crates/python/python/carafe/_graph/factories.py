"""Node factories of the opsets. `factories.txt` says for each how it is called, and which inputs and attributes of which
operation its arguments are; what a line cannot say is in `factories_by_hand.py`.

A line is `opset name(signature) -> Type@opset(inputs; attributes)`. `x|int64:0` is an input that is this constant where nobody
gives it, `kernel=kernel_shape|[]` an attribute under another name with the value for `None`; `**x` stands for a dictionary."""

import functools
import inspect
from pathlib import Path

from . import engine
from .node import Node
from .ports import Output

# The first opset in which a factory of an older one is found under this name, where that is later than its own.
_LATER = {("range", 4): 12}
_ALIASES = {"abs": "absolute", "ceil": "ceiling", "cumsum": "cum_sum"}
NEWEST = 17


class _Line:
    """One line of the table, parsed when its factory is first called."""

    def __init__(self, text):
        head, body = text.split(" -> ")
        opset, rest = head.split(" ", 1)
        self.opset = int(opset)
        self.name, self.signature = rest.rstrip(")").split("(", 1)
        self.body = body

    @functools.cached_property
    def parts(self):
        kind, rest = self.body[:-1].split("(", 1)
        kind, opset = kind.split("@")
        inputs, _, attributes = rest.partition("; ")
        return kind, f"opset{opset}", _split(inputs), [_attribute(a) for a in _split(attributes)]


def _split(text):
    """At commas that stand outside of brackets."""
    items, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    return [*items, text[start:].strip()] if text.strip() else []


def _attribute(text):
    name, _, rest = text.partition("=")
    parameter, bar, fallback = (rest or name).partition("|")
    return name.partition("|")[0], parameter, _literal(fallback) if bar else None


def _literal(text):
    import ast

    return ast.literal_eval(text)


@functools.cache
def _table():
    """Lines by opset and name."""
    text = Path(__file__).with_name("factories.txt").read_text(encoding="utf-8")
    lines = (_Line(line) for line in text.splitlines() if line and not line.startswith("#"))
    return {(line.opset, line.name): line for line in lines}


def make_node(kind, opset, inputs, attributes, name=None):
    """A node of this type. Inputs are nodes, outputs or numbers; a node with several outputs stands for all of them."""
    from ..utils.types import as_node

    # What stands where a name belongs and is no text is left alone, as programs of OpenVINO expect.
    name = name if isinstance(name, str) else None
    op = engine.create_op(kind, opset, attributes)
    values = []
    for value in inputs:
        value = as_node(value, name=name)
        values += value.outputs() if isinstance(value, Node) else [value]
    if op.most_inputs is not None and len(values) > op.most_inputs and len(inputs) <= op.most_inputs:
        values = [v.output(0) if isinstance(v, Node) else v for v in (as_node(i, name=name) for i in inputs)]
    return Node(op, values, name)


def _input(text, given, name):
    parameter, bar, fallback = text.partition("|")
    value = given[parameter]
    if value is None and bar:
        import numpy as np

        from ..utils.types import make_constant_node

        kind, number = fallback.split(":")
        value = make_constant_node(_literal(number), getattr(np, kind))
    return value


def _call(line, given):
    kind, opset, inputs, attributes = line.parts
    name = given.get("name")
    values = [_input(text, given, name) for text in inputs]
    while values and values[-1] is None:
        values.pop()
    if any(v is None for v in values):
        missing = inputs[values.index(None)].partition("|")[0]
        raise TypeError(f"{line.name}() needs '{missing}' where a later input is given")
    chosen = {}
    for attribute, parameter, fallback in attributes:
        if parameter.startswith("**"):
            chosen.update(given[parameter[2:]] or {})
        else:
            value = given[parameter]
            chosen[attribute] = fallback if value is None else value
    return make_node(kind, opset, values, chosen, name)


def _factory(line):
    namespace = {}
    # The signature is that of the table, so that help and keywords work; the body only gathers the arguments.
    exec(f"def {line.name}({line.signature}):\n    return call(locals())", {"call": lambda a: _call(line, a)}, namespace)
    function = namespace[line.name]
    kind = line.body.split("@")[0]
    function.__doc__ = f"A node of type {kind} of opset{line.body.split('@')[1].split('(')[0]}."
    function.__module__ = f"carafe.opset{line.opset}"
    return function


@functools.cache
def factory(opset, name):
    """The factory of this name that an opset brought."""
    from . import factories_by_hand

    own = factories_by_hand.FACTORIES.get((opset, name))
    return own if own is not None else _factory(_table()[opset, name])


@functools.cache
def _known():
    from . import factories_by_hand

    return sorted({*_table(), *factories_by_hand.FACTORIES})


@functools.cache
def names(opset):
    """What an opset offers: name to the opset that brought the factory."""
    found = {}
    for since, name in _known():
        if _LATER.get((name, since), since) <= opset and (opset < NEWEST or since == NEWEST):
            found[name] = since
    for alias, name in _ALIASES.items():
        if name in found:
            found[alias] = found[name]
    return found


def opset_module(number):
    """`__getattr__` and `__dir__` of the module of an opset."""

    def attribute(name):
        since = names(number).get(name)
        if since is None:
            raise AttributeError(f"opset{number} has no '{name}'")
        return factory(since, _ALIASES.get(name, name))

    return attribute, lambda: sorted(names(number))


def signature(opset, name):
    """How a factory is called."""
    return inspect.signature(factory(names(opset)[name], _ALIASES.get(name, name)))


def is_output(value):
    """Whether it is a value of a graph."""
    return isinstance(value, (Node, Output))
