"""Runtime information of nodes, ports and models as Python sees it: maps from names to values of any type."""

import contextlib
import enum

from .clock import touch

# What files call the mark of a node that is not converted to a smaller float.
_KEEPS = "DisablePrecisionConversion_0"


class OVAny:
    """A value of any type, as maps of runtime information hold them."""

    __slots__ = ("_value",)

    def __init__(self, value=None):
        self._value = value._value if isinstance(value, OVAny) else value

    @property
    def value(self):
        """The value itself."""
        return self._value

    def get(self):
        """The value itself."""
        return self._value

    def set(self, value):
        """Replaces the value."""
        self._value = value
        touch()

    def astype(self, dtype):
        """The value as one of `bool`, `int`, `float`, `str`, `dict`; texts of files are parsed."""
        value = self._value
        if isinstance(value, str) and dtype is bool:
            known = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
            if value.lower() not in known:
                raise RuntimeError(f"could not convert `{value}` to bool")
            return known[value.lower()]
        if dtype in (bool, int, float, str):
            try:
                return dtype(value)
            except (TypeError, ValueError) as error:
                raise RuntimeError(f"could not convert {value!r} to {dtype.__name__}") from error
        if dtype is dict and isinstance(value, dict):
            return value
        raise TypeError(f"Unsupported data type : '{dtype}' is passed as an argument.")

    def aslist(self, dtype=None):
        """The value as a list; the text of a list as files keep it is split."""
        value = self._value
        if isinstance(value, str):
            value = [v for v in value.replace(",", " ").split() if v]
        value = list(value) if value is not None else []
        return [OVAny(v).astype(dtype) for v in value] if dtype is not None else value

    def to_dict(self):
        """The value as a dictionary."""
        return dict(self._value)

    def __getitem__(self, key):
        return self._value[key]

    def __setitem__(self, key, value):
        self._value[key] = value
        touch()

    def __len__(self):
        return len(self._value)

    def __eq__(self, other):
        return self._value == (other._value if isinstance(other, OVAny) else other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(str(self._value))

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return f"<OVAny: {self._value!r}>"


class RTMap:
    """Runtime information by name. Values come back as `OVAny`, maps as dictionaries of them."""

    __slots__ = ("_items", "__weakref__")

    def __init__(self, items=None):
        self._items = {}
        for key, value in dict(items or {}).items():
            self._items[str(key)] = _wrap(value)

    def __getitem__(self, key):
        return self._items[key]

    def __setitem__(self, key, value):
        self._items[str(key)] = _wrap(value)
        touch()

    def __delitem__(self, key):
        del self._items[key]
        touch()

    def __contains__(self, key):
        return key in self._items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)

    def __bool__(self):
        return bool(self._items)

    def keys(self):
        """Names."""
        return self._items.keys()

    def values(self):
        """Values."""
        return self._items.values()

    def items(self):
        """Names with values."""
        return self._items.items()

    def __eq__(self, other):
        return isinstance(other, RTMap) and self._items == other._items

    __hash__ = None

    def __repr__(self):
        return "<RTMap>"


class RtAttribute(dict):
    """A named attribute of the engine with its fields, such as `decompression` or `layout_0`."""

    def __init__(self, name, version, fields):
        super().__init__(fields)
        self.name, self.version = name, version

    def __str__(self):
        return ", ".join(self.values())


def _wrap(value):
    if isinstance(value, OVAny):
        return value
    if isinstance(value, dict) and not isinstance(value, RtAttribute):
        return {key: _wrap(v) for key, v in value.items()}
    return OVAny(value.value if isinstance(value, enum.Enum) else value)


def plain(value):
    """Without wrappers: dictionaries and values."""
    if isinstance(value, OVAny):
        return plain(value.value)
    if isinstance(value, (RTMap, dict)) and not isinstance(value, RtAttribute):
        return {key: plain(v) for key, v in value.items()}
    return value.value if isinstance(value, enum.Enum) else value


def text(value):
    """The text that files keep of a value; `None` where they keep none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, (list, tuple)):
        parts = [text(v) for v in value]
        return None if None in parts else ", ".join(parts)
    return str(value) if hasattr(value, "__str__") and type(value).__str__ is not object.__str__ else None


def tree_of(items):
    """`(key, value, children)` entries of a map, as the engine keeps user data."""
    tree = []
    for key, value in items.items():
        value = value.value if isinstance(value, OVAny) else value
        if isinstance(value, (dict, RTMap)) and not isinstance(value, RtAttribute):
            tree.append((key, None, tree_of(value)))
        elif text(value) is not None:
            tree.append((key, text(value), []))
    return tree


def map_of_tree(tree):
    """What `tree_of` made, as a dictionary."""
    return {key: (map_of_tree(children) if value is None else value) for key, value, children in tree}


def port_info(entry):
    """`(attributes, tree)` of a node or port as the engine has it, as a map."""
    attributes, tree = entry
    items = map_of_tree(tree)
    for name, version, fields in attributes:
        items[f"{name}_{version}"] = RtAttribute(name, version, fields)
    return RTMap(items)


def engine_info(items):
    """A map of a node or port as `(attributes, tree)` for the engine."""
    attributes, rest = [], {}
    for key, value in items.items():
        inner = value.value if isinstance(value, OVAny) else value
        if isinstance(inner, RtAttribute):
            attributes.append((inner.name, inner.version, list(inner.items())))
        else:
            rest[key] = value
    return attributes, tree_of(rest)


def walk(items, path):
    """The value at a path of names; `KeyError` where there is none."""
    for key in path:
        items = items.value if isinstance(items, OVAny) else items
        items = items[key]
    return items


def dumps(value):
    """A value as JSON text, for printing."""
    import json

    return json.dumps(plain(value), default=str)


@contextlib.contextmanager
def as_files_have_it(model):
    """Marks nodes that a program asked to keep their precision as files do, for as long as the model is written. An operation
    whose attributes files cannot keep is an error."""
    nodes = model.get_ordered_ops() if getattr(model, "_expanded", False) else []
    for node in nodes:
        if hasattr(node, "_unwritable") and not node._postponed:
            node._engine_op()
            if node._unwritable is not None:
                raise node._unwritable
    marked = [node for node in nodes if node._rt and "precise_0" in node._rt and _KEEPS not in node._rt]
    for node in marked:
        node.get_rt_info()[_KEEPS] = RtAttribute("DisablePrecisionConversion", "0", [])
    try:
        yield
    finally:
        for node in marked:
            del node.get_rt_info()[_KEEPS]
