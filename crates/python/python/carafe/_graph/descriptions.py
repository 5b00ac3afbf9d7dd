"""How ports of a body meet those of its node: descriptions, as If, Loop and TensorIterator take and give them."""

from .type_info import DiscreteTypeInfo


class _Description:
    _fields = ()

    def __init__(self, *values, **named):
        if values or named:
            rest = dict(zip(self._fields, values), **named)
        else:
            rest = {}
        unknown = set(rest) - set(self._fields)
        if unknown or len(values) > len(self._fields):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._fields)}")
        for field in self._fields:
            setattr(self, field, rest.get(field, -1 if field == "iteration" else 0))

    def copy(self):
        """Another one that says the same."""
        return type(self)(**{f: getattr(self, f) for f in self._fields})

    def get_type_info(self):
        """The kind of the description."""
        return DiscreteTypeInfo(type(self).__name__, "")

    def _cut(self):
        return (self.axis, self.start, self.end, self.stride, self.part_size)

    def __repr__(self):
        return f"<{type(self).__name__}>"


class InputDescription(_Description):
    """How an input reaches the body."""

    _fields = ("input_index", "body_parameter_index")


class InvariantInputDescription(InputDescription):
    """The same value in every iteration."""


class MergedInputDescription(InputDescription):
    """The value at first, then a result of the previous iteration."""

    _fields = ("input_index", "body_parameter_index", "body_value_index")


class SliceInputDescription(InputDescription):
    """A part of the value in each iteration."""

    _fields = ("input_index", "body_parameter_index", "start", "stride", "part_size", "end", "axis")


class OutputDescription(_Description):
    """How a result of the body leaves it."""

    _fields = ("body_value_index", "output_index")


class BodyOutputDescription(OutputDescription):
    """The result of one iteration, -1 for the last."""

    _fields = ("body_value_index", "output_index", "iteration")


class ConcatOutputDescription(OutputDescription):
    """The results of all iterations, joined."""

    _fields = ("body_value_index", "output_index", "start", "stride", "part_size", "end", "axis")


def engine_inputs(descriptions):
    """Descriptions as the engine's `(outer, parameter, cut, back edge)`."""
    listed = []
    for d in descriptions:
        cut = d._cut() if isinstance(d, SliceInputDescription) else None
        back = d.body_value_index if isinstance(d, MergedInputDescription) else None
        listed.append((d.input_index, d.body_parameter_index, cut, back))
    return listed


def engine_outputs(descriptions):
    """Descriptions as the engine's `(outer, result, cut)`."""
    cut = lambda d: d._cut() if isinstance(d, ConcatOutputDescription) else None  # noqa: E731
    return [(d.output_index, d.body_value_index, cut(d)) for d in descriptions]


def of_engine_inputs(listed):
    """The other way."""
    made = []
    for outer, parameter, cut, back in listed:
        if outer is None:
            continue
        if cut is not None:
            axis, start, end, stride, part = cut
            made.append(SliceInputDescription(outer, parameter, start, stride, part, end, axis))
        elif back is not None:
            made.append(MergedInputDescription(outer, parameter, back))
        else:
            made.append(InvariantInputDescription(outer, parameter))
    return made


def of_engine_outputs(listed):
    """The other way."""
    made = []
    for outer, result, cut in listed:
        if cut is not None:
            axis, start, end, stride, part = cut
            made.append(ConcatOutputDescription(result, outer, start, stride, part, end, axis))
        else:
            made.append(BodyOutputDescription(result, outer, -1))
    return made
