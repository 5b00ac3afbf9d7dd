"""`OVAny`, a value of any type, and `RTMap`, a map of such values."""

from collections.abc import MutableMapping


class OVAny:
    """A value of any type."""

    __slots__ = ("_value",)

    def __init__(self, value):
        self._value = value._value if isinstance(value, OVAny) else value

    @property
    def value(self):
        """The value."""
        return self._value

    def get(self):
        """The value."""
        return self._value

    def set(self, value):
        """Another value."""
        self._value = value._value if isinstance(value, OVAny) else value

    def astype(self, dtype):
        """The value as this type: bool, int, float, str or a class."""
        if isinstance(self._value, dtype):
            return self._value
        if dtype is bool and isinstance(self._value, str):
            word = self._value.strip().lower()
            if word in ("yes", "true", "1", "on"):
                return True
            if word in ("no", "false", "0", "off"):
                return False
            raise RuntimeError(f"`{self._value}` is no bool")
        if dtype in (bool, int, float, str) or hasattr(dtype, "__call__"):
            try:
                return dtype(self._value)
            except (TypeError, ValueError) as error:
                raise RuntimeError(f"a value of {type(self._value)} cannot be a {dtype}: {error}") from error
        raise RuntimeError(f"a value of {type(self._value)} cannot be a {dtype}")

    def aslist(self, dtype=None):
        """The value as a list of this type; a text is split at spaces or commas."""
        values = self._value
        if isinstance(values, str):
            values = values.replace(",", " ").split()
        return [item if dtype is None or isinstance(item, dtype) else dtype(item) for item in values]

    def __getitem__(self, key):
        return self._value[key]

    def __setitem__(self, key, value):
        self._value[key] = value

    def __len__(self):
        return len(self._value)

    def __iter__(self):
        return iter(self._value)

    def __contains__(self, key):
        return key in self._value

    def __eq__(self, other):
        return self._value == (other._value if isinstance(other, OVAny) else other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self._value)

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return int(self._value)

    def __float__(self):
        return float(self._value)

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return f"<OVAny: {self._value!r}>"


class RTMap(MutableMapping):
    """Runtime information: names with values of any type."""

    __slots__ = ("_values",)

    def __init__(self, values=None):
        self._values = dict(values) if values is not None else {}

    def __getitem__(self, key):
        return self._values[key]

    def __setitem__(self, key, value):
        self._values[key] = value if isinstance(value, OVAny) else OVAny(value)

    def __delitem__(self, key):
        del self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return f"<RTMap: {self._values}>"
