"""Finds a pattern in a graph."""

from .._graph.node import Node
from .._graph.ports import Output, node_and_port
from .patterns import _Pattern

_COMMUTATIVE = {
    "Add",
    "Multiply",
    "Maximum",
    "Minimum",
    "Equal",
    "NotEqual",
    "LogicalAnd",
    "LogicalOr",
    "LogicalXor",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "SquaredDifference",
}


class Matcher:
    """A pattern with a name, and what it matched last."""

    def __init__(self, pattern, name):
        self._pattern = (pattern, 0) if isinstance(pattern, Node) else node_and_port(pattern)
        self._name = name
        self._clear()

    def _clear(self):
        self._map, self._order, self._symbols, self._root = {}, [], {}, None

    def _state(self):
        return dict(self._map), list(self._order), dict(self._symbols)

    def _restore(self, state):
        self._map, self._order, self._symbols = state

    def _keep(self, pattern, value):
        self._map[pattern] = value
        self._order.append(value)

    def match(self, value):
        """Whether a node or output is like the pattern."""
        self._clear()
        value = Output(value, 0) if isinstance(value, Node) else value
        if not self._match_value(*self._pattern, value):
            self._clear()
            return False
        self._root = value
        return True

    def _match_value(self, pattern, port, value):
        known = self._map.get(pattern)
        if known is not None:
            return known == value if not isinstance(pattern, _Pattern) else known.get_node() is value.get_node()
        if isinstance(pattern, _Pattern):
            return pattern._match(self, port, value)
        # An operation as it is: the same type, on inputs like its own.
        node = value.get_node()
        if port != value.get_index() or node.get_type_info() != pattern.get_type_info():
            return False
        self._keep(pattern, value)
        return self._match_inputs(pattern, node)

    def _match_inputs(self, pattern, node):
        wanted, found = pattern._inputs, node.input_values()
        if len(wanted) != len(found):
            return False
        orders = [list(range(len(found)))]
        if len(found) == 2 and node.get_type_name() in _COMMUTATIVE:
            orders.append([1, 0])
        for order in orders:
            state = self._state()
            if all(self._match_value(*wanted[i], found[at]) for i, at in enumerate(order)):
                return True
            self._restore(state)
        return False

    def get_name(self):
        """Name of the pattern."""
        return self._name

    def get_match_root(self):
        """The node that was matched."""
        return self._root.get_node()

    def get_match_value(self):
        """The value that was matched."""
        return self._root

    def get_match_nodes(self):
        """All nodes that were matched."""
        return [value.get_node() for value in self._order]

    def get_match_values(self):
        """All values that were matched."""
        return list(self._order)

    def get_pattern_value_map(self):
        """Nodes of the pattern with the values that they matched."""
        return dict(self._map)

    def get_pattern_map(self):
        """Nodes of the pattern with the nodes that they matched."""
        return {pattern: value.get_node() for pattern, value in self._map.items()}

    def get_symbols(self):
        """Names in patterns of shapes with what they stand for."""
        return dict(self._symbols)

    def __repr__(self):
        return f"<Matcher: '{self._name}'>"
