"""Enumerations whose members are numbers with names."""


class Enumeration(int):
    """A number with a name; `Class.NAME` and `Class(number)` give members."""

    def __new__(cls, value):
        for member, _ in cls.__dict__["__entries"].values():
            if int(member) == value:
                return member
        raise ValueError(f"{value} is no {cls.__name__}")

    @property
    def name(self):
        """The name of the member."""
        return self._name

    @property
    def value(self):
        """The number of the member."""
        return int(self)

    def __eq__(self, other):
        if isinstance(other, Enumeration) and type(other) is not type(self):
            return False
        return int.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return int.__hash__(self)

    def __str__(self):
        return f"{type(self).__name__}.{self._name}"

    def __repr__(self):
        return f"<{self}: {int(self)}>"

    def __reduce__(self):
        return type(self), (int(self),)


def enumeration(name, members, module, aliases=()):
    """A class with these members; aliases are further names of some."""
    entries = {}
    made = type(Enumeration)(name, (Enumeration,), {"__entries": entries, "__module__": module})
    for member, number in members.items():
        value = int.__new__(made, number)
        value._name = member
        entries[member] = (value, None)
        setattr(made, member, value)
    for alias, member in dict(aliases).items():
        entries[alias] = (entries[member][0], None)
        setattr(made, alias, entries[member][0])
    made.__members__ = {key: value for key, (value, _) in entries.items()}
    return made
