"""What kind an operation is of: name and opset."""


class DiscreteTypeInfo:
    """Type of an operation and the opset that it is of."""

    __slots__ = ("_name", "_version", "_parent")

    def __init__(self, name, version_id, parent=None):
        self._name, self._version, self._parent = str(name), str(version_id), parent

    @property
    def name(self):
        """Name of the type."""
        return self._name

    @property
    def version_id(self):
        """Opset."""
        return self._version

    @property
    def parent(self):
        """Type that this one is a kind of, where it is known."""
        return self._parent

    def get_version(self):
        """Opset."""
        return self._version

    def hash(self):
        """A number that is the same for the same type."""
        return hash((self._name, self._version)) & 0xFFFFFFFFFFFFFFFF

    def _key(self):
        return (self._version, self._name)

    def __eq__(self, other):
        return isinstance(other, DiscreteTypeInfo) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __le__(self, other):
        return self._key() <= other._key()

    def __gt__(self, other):
        return self._key() > other._key()

    def __ge__(self, other):
        return self._key() >= other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"<DiscreteTypeInfo: {self._name} {self._version}>"


_known = {}


def type_info_of(op):
    """Of an operation of the engine."""
    key = (op.type_name, op.opset)
    if key not in _known:
        _known[key] = DiscreteTypeInfo(*key)
    return _known[key]
