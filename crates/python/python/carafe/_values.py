"""Lists of sizes under names of their own."""


class _Sizes(list):
    """A list of integers that compares with lists and tuples."""

    __slots__ = ()
    __hash__ = None

    def __init__(self, values=()):
        super().__init__(values)

    def __eq__(self, other):
        if isinstance(other, (list, tuple)):
            return list.__eq__(self, list(other))
        return NotImplemented

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return type(self)(found) if isinstance(key, slice) else found


def _size(value):
    number = value.get_length() if hasattr(value, "get_length") else int(value.__index__())
    if number < 0:
        raise TypeError(f"a size is not negative, found {number}")
    return number


class Shape(_Sizes):
    """The sizes of a tensor."""

    __slots__ = ()

    def __init__(self, axis_lengths=(), *, shape=None):
        values = axis_lengths if shape is None else shape
        if isinstance(values, str):
            from carafe._native import PartialShape

            values = [dim.get_min_length() for dim in PartialShape(values)]
        super().__init__(_size(value) for value in values)

    def __setitem__(self, key, value):
        super().__setitem__(key, value if isinstance(key, slice) else _size(value))

    def to_string(self):
        """The sizes in brackets."""
        return "[" + ",".join(map(str, self)) + "]"

    __str__ = to_string

    def __repr__(self):
        return f"<Shape: {self}>"


class Strides(_Sizes):
    """Steps along the axes of a tensor."""

    __slots__ = ()

    def __init__(self, axis_strides=()):
        super().__init__(_size(value) for value in axis_strides)

    def __str__(self):
        return ", ".join(map(str, self))

    def __repr__(self):
        return f"<Strides: ({self})>"


class AxisVector(_Sizes):
    """A list of axes."""

    __slots__ = ()

    def __init__(self, axes=()):
        super().__init__(_size(value) for value in axes)

    def __repr__(self):
        return "<AxisVector {" + ", ".join(map(str, self)) + "}>"

    __str__ = __repr__


class Coordinate(_Sizes):
    """A place in a tensor."""

    __slots__ = ()

    def __init__(self, values=()):
        super().__init__(_size(value) for value in values)

    def __repr__(self):
        return f"<Coordinate: ({', '.join(map(str, self))})>"


class CoordinateDiff(_Sizes):
    """The way from one place in a tensor to another."""

    __slots__ = ()

    def __init__(self, values=()):
        super().__init__(int(value) for value in values)

    def __str__(self):
        return ", ".join(map(str, self))

    def __repr__(self):
        return f"<CoordinateDiff: ({self})>"


class TensorVector(list):
    """Tensors in a row."""

    def __repr__(self):
        return f"<TensorVector: len({len(self)})>"


class AxisSet:
    """A set of axes, in order."""

    __slots__ = ("_axes",)
    __hash__ = None

    def __init__(self, axes=()):
        self._axes = sorted({_size(axis) for axis in axes})

    def __iter__(self):
        return iter(self._axes)

    def __len__(self):
        return len(self._axes)

    def __eq__(self, other):
        return set(self._axes) == set(other)

    def __repr__(self):
        return "<AxisSet {" + ", ".join(map(str, self._axes)) + "}>"
