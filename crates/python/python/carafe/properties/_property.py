"""What the properties of this package are: texts that can be called."""

import os

from carafe._graph.rt_info import OVAny


def _refused(key, values):
    given = ", ".join(map(repr, values))
    return TypeError(f"{key}(): incompatible function arguments: {given}")


class Property(str):
    """The key of a property. Called without an argument it is the key, called with a value a pair of both."""

    def __new__(cls, key, take=None):
        made = super().__new__(cls, key)
        made._take = take
        return made

    def __call__(self, *values):
        if not values:
            return str(self)
        if self._take is None:
            raise _refused(self, values)
        try:
            return str(self), OVAny(self._take(*values))
        except _Wrong:
            raise _refused(self, values) from None


class _Wrong(Exception):
    """A value of a type that the property does not take."""


def of(*types):
    """Takes a value of these types as it is."""

    def take(value):
        if isinstance(value, bool) and bool not in types:
            raise _Wrong
        if not isinstance(value, types):
            raise _Wrong
        return value

    return take


def flag(value):
    """Takes a bool, or an integer in its place."""
    if not hasattr(value, "__index__"):
        raise _Wrong
    return bool(value)


def integer(value):
    """Takes a whole number."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _Wrong
    return value.__index__()


def number(value):
    """Takes a number as single precision has it."""
    import struct

    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise _Wrong
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def text(value):
    """Takes a text or a path."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if not isinstance(value, str):
        raise _Wrong
    return value


def anything(value):
    """Takes any value."""
    return value


wrong = _Wrong
