"""How many inferences a device runs at the same time."""

from carafe.properties._property import Property as _Property
from carafe.properties._property import wrong as _wrong


class Num:
    """A number of streams: so many, or what the device or its memory suggests."""

    __slots__ = ("_number",)

    def __init__(self, number=-1):
        self._number = int(number)

    def to_integer(self):
        """The number; -1 for AUTO, -2 for NUMA."""
        return self._number

    def __int__(self):
        return self._number

    __index__ = __int__

    def __eq__(self, other):
        return hasattr(other, "__index__") and self._number == other.__index__()

    def __hash__(self):
        return hash(self._number)

    def __repr__(self):
        return f"<Num: {self._number}>"


Num.AUTO = Num(-1)
Num.NUMA = Num(-2)


def _streams(value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _wrong
    return value.__index__()


num = _Property("NUM_STREAMS", _streams)
