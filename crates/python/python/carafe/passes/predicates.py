"""What a pattern asks of a value beside its type."""

import inspect

from .._graph import engine


class Predicate:
    """A question about a value: a function of the output, or of the symbols found so far and the output."""

    def __init__(self, predicate=None):
        if isinstance(predicate, Predicate):
            self._ask = predicate._ask
        elif predicate is None:
            self._ask = lambda symbols, output: True
        elif _takes_two(predicate):
            self._ask = predicate
        else:
            self._ask = lambda symbols, output: predicate(output)

    def __call__(self, symbols, output):
        return bool(self._ask(symbols, output))


def _takes_two(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 2


def consumers_count(n):
    """Read by this many inputs."""
    return Predicate(lambda output: len(output.get_target_inputs()) == n)


def has_static_dim(pos):
    """One dimension is known."""
    return has_static_dims([pos])


def has_static_dims(dims):
    """These dimensions are known."""

    def ask(output):
        shape = output.get_partial_shape()
        if shape.rank.is_dynamic:
            return False
        return len(shape) > max(dims, default=-1) and all(shape[d].is_static for d in dims)

    return Predicate(ask)


def has_static_shape():
    """The shape is known."""
    return Predicate(lambda output: output.get_partial_shape().is_static)


def has_static_rank():
    """The rank is known."""
    return Predicate(lambda output: output.get_partial_shape().rank.is_static)


def rank_equals(expected_rank):
    """The rank is this one."""
    return Predicate(lambda output: output.get_partial_shape().rank == expected_rank)


def rank_more_than(expected_rank):
    """The rank is known and greater."""
    least = expected_rank if isinstance(expected_rank, int) else expected_rank.get_length()

    def ask(output):
        rank = output.get_partial_shape().rank
        return rank.is_static and rank.get_length() > least

    return Predicate(ask)


def type_matches(element_type):
    """The element type is this one."""
    return Predicate(lambda output: output.get_element_type() == element_type)


def type_matches_any(types):
    """The element type is one of these."""
    return Predicate(lambda output: any(output.get_element_type() == t for t in types))


def attrs_match(expected):
    """The node has these attributes."""

    def ask(output):
        found = output.get_node().get_attributes()
        return all(name in found and _same(found[name], value) for name, value in dict(expected).items())

    return Predicate(ask)


def _same(found, value):
    if isinstance(value, engine.Type):
        value = value.get_type_name()
    if isinstance(found, str) and isinstance(value, str):
        return found.lower() == value.lower()
    return list(found) == list(value) if isinstance(found, (list, tuple)) else found == value


def shape_matches(pattern):
    """The shape is like a text such as `[Batch,3,H,W]`: numbers, names that stand for one dimension, `?`, and one group
    `...` or `Name...` that stands for any number of them. Names that were met before must be the same again."""
    parts = [p.strip() for p in pattern.strip().strip("[]").split(",") if p.strip()]
    groups = [i for i, p in enumerate(parts) if p.endswith("...")]
    if len(groups) > 1:
        raise RuntimeError(f"pattern '{pattern}' has more than one group")

    def ask(symbols, output):
        from .patterns import PatternSymbolValue

        shape = output.get_partial_shape()
        if shape.rank.is_dynamic:
            return parts == ["..."]
        dims = list(shape)
        if len(dims) < len(parts) - len(groups) or (not groups and len(dims) != len(parts)):
            return False
        found = {}
        head = groups[0] if groups else len(parts)
        tail = len(parts) - head - 1 if groups else 0
        pairs = list(zip(parts[:head], dims[:head]))
        if tail > 0:
            pairs += list(zip(parts[-tail:], dims[-tail:]))
        for name, dim in pairs:
            if name == "?":
                continue
            value = PatternSymbolValue._of_dim(dim)
            if name.lstrip("-").isdigit():
                if value != int(name):
                    return False
            elif not _agree(symbols, found, name, value):
                return False
        if groups and parts[head] != "...":
            group = [PatternSymbolValue._of_dim(d) for d in dims[head : len(dims) - tail]]
            if not _agree(symbols, found, parts[head][:-3], PatternSymbolValue(group)):
                return False
        symbols.update(found)
        return True

    return Predicate(ask)


def _agree(symbols, found, name, value):
    known = found.get(name, symbols.get(name))
    if known is not None:
        return known == value
    found[name] = value
    return True
