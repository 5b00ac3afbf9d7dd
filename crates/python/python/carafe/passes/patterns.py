"""Nodes that stand for others in a pattern."""

from .._graph import engine
from .._graph.node import Node
from .._graph.ports import Output, node_and_port
from .._graph.type_info import DiscreteTypeInfo
from .predicates import Predicate


class PatternSymbolValue:
    """What a name in a pattern of shapes stands for: a number, a symbol, or a list of them."""

    def __init__(self, value=None):
        self._value = value._value if isinstance(value, PatternSymbolValue) else value

    @classmethod
    def _of_dim(cls, dim):
        return cls(dim.get_length() if dim.is_static else dim.get_symbol())

    def is_dynamic(self):
        """Whether it is a symbol."""
        return not isinstance(self._value, (int, float, list))

    def is_static(self):
        """Whether it is a number."""
        return isinstance(self._value, (int, float))

    def is_group(self):
        """Whether it is a list."""
        return isinstance(self._value, list)

    def is_integer(self):
        """Whether it is a whole number."""
        return isinstance(self._value, int)

    def is_double(self):
        """Whether it is a number with a fraction."""
        return isinstance(self._value, float)

    def i(self):
        """The whole number."""
        return int(self._value)

    def d(self):
        """The number."""
        return float(self._value)

    def s(self):
        """The symbol."""
        return self._value

    def g(self):
        """The list."""
        return list(self._value)

    def __eq__(self, other):
        other = other._value if isinstance(other, PatternSymbolValue) else other
        if isinstance(self._value, list) and isinstance(other, (list, tuple)):
            return len(self._value) == len(other) and all(a == b for a, b in zip(self._value, other))
        return self._value == other

    __hash__ = None

    def __repr__(self):
        return f"<PatternSymbolValue: {self._value}>"


class _Pattern(Node):
    _kind = ""

    def __init__(self, inputs=()):
        self._start()
        self._inputs = []
        for value in inputs:
            self._inputs.append((value, 0) if isinstance(value, Node) else node_and_port(value))
        self._attach()
        self._facts = [engine.unknown_fact()]

    def get_type_info(self):
        """Patterns are of no opset."""
        return DiscreteTypeInfo(self._kind, "util")

    def get_attributes(self):
        """Patterns have none."""
        return {}

    def _infer(self):
        pass

    def _copy(self, inputs):
        raise RuntimeError("patterns are not copied")

    def __repr__(self):
        return f"<{self._kind}: '{self.friendly_name}'>"


def _type_of(text):
    """The type and opset that `opset8.Relu` or `opset8::Relu` names."""
    opset, mark, name = text.partition("::")
    if not mark:
        opset, mark, name = text.partition(".")
    if not mark or not name or not opset.startswith("opset"):
        raise RuntimeError(f"Wrong type format: '{text}', expected like opset13.Relu")
    if not opset[5:].isdigit() or not 1 <= int(opset[5:]) <= 17:
        raise RuntimeError(f"Unsupported opset type: {opset}")
    found = engine.GraphOp.find_type(name, opset)
    if found is None:
        raise RuntimeError(f"{opset} has no operation '{name}'")
    return found


def _types_of(names):
    return [_type_of(name) for name in ([names] if isinstance(names, str) else names)]


def _split(arguments, named):
    """Inputs and predicate out of what a pattern was given."""
    predicate = named.pop("predicate", named.pop("pred", None))
    inputs = named.pop("inputs", named.pop("input", None))
    if named:
        raise TypeError(f"unexpected argument '{next(iter(named))}'")
    for argument in arguments:
        if isinstance(argument, (Node, Output, list, tuple)):
            inputs = argument
        elif callable(argument):
            predicate = argument
        elif argument is not None:
            raise TypeError(f"a pattern takes inputs and a predicate, found {type(argument).__name__}")
    if isinstance(inputs, (Node, Output)):
        inputs = [inputs]
    return list(inputs or []), Predicate(predicate)


class AnyInput(_Pattern):
    """Any value, or any that a predicate accepts."""

    _kind = "AnyInput"

    def __init__(self, predicate=None):
        super().__init__()
        self._predicate = Predicate(predicate)

    def _match(self, matcher, port, value):
        if not self._predicate(matcher._symbols, value):
            return False
        matcher._keep(self, value)
        return True


class WrapType(_Pattern):
    """A node of one of these types, with inputs like these where any are given."""

    _kind = "WrapType"

    def __init__(self, type_name=None, *arguments, type_names=None, **named):
        self._types = _types_of(type_name if type_name is not None else type_names)
        inputs, self._predicate = _split(arguments, named)
        super().__init__(inputs)

    def _match(self, matcher, port, value):
        info = value.get_node().get_type_info()
        if (info.name, info.version_id) not in self._types:
            return False
        if not self._predicate(matcher._symbols, value):
            return False
        matcher._keep(self, value)
        return not self._inputs or matcher._match_inputs(self, value.get_node())


class Or(_Pattern):
    """Whichever of its inputs matches first."""

    _kind = "Or"

    def __init__(self, inputs):
        super().__init__(inputs)

    def _match(self, matcher, port, value):
        for node, index in self._inputs:
            state = matcher._state()
            if matcher._match_value(node, index, value):
                matcher._map[self] = value
                return True
            matcher._restore(state)
        return False


class Optional(_Pattern):
    """A node of one of these types, or its first input where there is none."""

    _kind = "Optional"

    def __init__(self, type_names, *arguments, **named):
        inputs, predicate = _split(arguments, named)
        super().__init__(inputs)
        self._wrapped = WrapType(type_names, [Output(*i) for i in self._inputs], predicate)

    def _match(self, matcher, port, value):
        state = matcher._state()
        if self._wrapped._match(matcher, 0, value):
            matcher._map[self] = value
            return True
        matcher._restore(state)
        return bool(self._inputs) and matcher._match_value(*self._inputs[0], value)
