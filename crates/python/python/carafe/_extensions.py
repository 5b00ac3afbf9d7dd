"""What `Core.add_extension` takes: classes of operations, extensions of front ends, libraries, lists of these."""

import os

from carafe import _native
from carafe._graph.custom import AttributeVisitor, Op
from carafe._graph.type_info import DiscreteTypeInfo


class Extension:
    """Something that a core can be given."""

    def _native(self):
        """The extensions of the engine that it is; none, where a subclass says nothing."""
        return []


class OpExtension(Extension):
    """An operation that is written in Python: a subclass of `Op` that can be made without arguments."""

    def __init__(self, operation):
        self._class, self._info = operation, _type_info(operation)

    def _native(self):
        create = lambda attributes: _instance(self._class, attributes)._engine_op()  # noqa: E731
        return [_native.NativeExtension.operation(self._info.name, self._info.version_id, create)]


def _type_info(operation):
    if not (isinstance(operation, type) and issubclass(operation, Op)):
        raise RuntimeError(f"Unsupported data type : '{operation}' is passed as an argument.")
    try:
        info = operation().get_type_info()
    except TypeError as error:
        raise RuntimeError(f"{operation.__name__} cannot be made without arguments: {error}") from error
    if not isinstance(info, DiscreteTypeInfo):
        raise RuntimeError(f"operation type_info must be an instance of DiscreteTypeInfo, but {type(info)} is passed.")
    return info


class _Setter(AttributeVisitor):
    """Sets the attributes that an operation shows to those of a file."""

    def __init__(self, values):
        super().__init__()
        self._values = values

    def on_attributes(self, attributes):
        """Takes the values over, as what the operation has there."""
        if attributes is not None:
            attributes.update({name: _typed(value, attributes.get(name)) for name, value in self._values.items()})


def _instance(operation, attributes):
    """An object of the class with these attributes, on no inputs yet."""
    made = operation()
    made.visit_attributes(_Setter(attributes))
    if all(name in made.get_attributes() for name in attributes):
        return made
    # One that shows nothing before it has something may take attributes by name.
    try:
        return operation(**{name: _typed(value, None) for name, value in attributes.items()})
    except TypeError:
        return made


def _typed(value, like):
    """A text of a file as what it is, or as what stood there."""
    if not isinstance(value, str) or isinstance(like, str):
        return value
    if isinstance(like, bool):
        return value.lower() in ("true", "1")
    if isinstance(like, (int, float)):
        return type(like)(value)
    if isinstance(like, (list, tuple)):
        items = [item.strip() for item in value.split(",") if item.strip()]
        return [_typed(item, like[0] if like else None) for item in items]
    for convert in (int, float):
        try:
            return convert(value)
        except ValueError:
            pass
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if "," in value:
        return [_typed(item.strip(), None) for item in value.split(",")]
    return value


def add(core, extension):
    """Adds an extension, or all of a list, to a core."""
    if isinstance(extension, (list, tuple)):
        for one in extension:
            add(core, one)
    elif isinstance(extension, (str, os.PathLike)):
        core._add_library(os.fspath(extension))
    elif not isinstance(extension, (Extension, type)):
        raise TypeError(f"incompatible function arguments: {extension!r} is no extension")
    else:
        wrapped = extension if isinstance(extension, Extension) else OpExtension(extension)
        for native in wrapped._native():
            _native.add_native(core, native)
