"""`OVDict`: the results of an inference."""

from collections.abc import Mapping

from carafe._native import ConstOutput


class OVDict(Mapping):
    """Results of an inference by port, by number of the output, or by any name of it. It cannot be changed."""

    __slots__ = ("_dict", "__weakref__")

    def __init__(self, results):
        self._dict = results

    def __getitem__(self, key):
        if isinstance(key, int):
            try:
                return tuple(self._dict.values())[key]
            except IndexError:
                raise KeyError(key) from None
        if isinstance(key, str):
            for port, value in self._dict.items():
                if key in port.get_names():
                    return value
            raise KeyError(key)
        if isinstance(key, ConstOutput) or hasattr(key, "get_names"):
            return self._dict[key]
        raise TypeError(f"Unknown key type: {type(key)}")

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __repr__(self):
        return repr(self._dict)

    def keys(self):
        """Ports of the outputs."""
        return self._dict.keys()

    def values(self):
        """Arrays, in the order of the outputs."""
        return self._dict.values()

    def items(self):
        """Ports with arrays."""
        return self._dict.items()

    def names(self):
        """The names of each output."""
        return tuple(port.get_names() for port in self._dict)

    def to_dict(self):
        """The plain dict of ports and arrays."""
        return self._dict

    def to_tuple(self):
        """The arrays alone."""
        return tuple(self._dict.values())
