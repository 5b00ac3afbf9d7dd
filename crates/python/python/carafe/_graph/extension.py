"""Extensions in Python: operations that files may hold and that a `Core` then knows."""

from . import engine
from .custom import AttributeVisitor, Op
from .type_info import DiscreteTypeInfo


class Extension:
    """What may be given to `Core.add_extension`."""

    def _add_to(self, core):
        """Nothing, unless a subclass has something to add."""


class OpExtension(Extension):
    """An operation that is written in Python."""

    def __init__(self, operation):
        self.operation = checked(operation)

    def _add_to(self, core):
        info = type_info_of(self.operation)
        engine.add_python_op(core, self.operation, info.name, info.version_id)


def checked(operation):
    """The class, if it is one of an operation that can be made without arguments."""
    if not isinstance(operation, type) or not issubclass(operation, Op):
        raise RuntimeError(f"Unsupported data type : '{operation}' is passed as an argument.")
    info = getattr(operation, "class_type_info", None)
    if info is not None and not isinstance(info, DiscreteTypeInfo):
        text = f"operation type_info must be an instance of DiscreteTypeInfo, but {type(info)} is passed."
        raise RuntimeError(text)
    try:
        operation()
    except TypeError as error:
        raise RuntimeError(str(error)) from error
    return operation


def type_info_of(operation):
    """Type and opset under which files have an operation."""
    info = getattr(operation, "class_type_info", None)
    return info if info is not None else DiscreteTypeInfo(operation.__name__, "extension")


class _Loader(AttributeVisitor):
    """Sets the attributes that an operation shows to what a file says."""

    def __init__(self, found):
        super().__init__()
        self._found = found

    def on_attributes(self, attributes):
        """Takes over the values of the names that are there, in the type of what stood there."""
        super().on_attributes(attributes)
        for name in attributes or ():
            if name in self._found:
                attributes[name] = _like(attributes[name], self._found[name])


def _like(old, text):
    if isinstance(old, bool):
        return text in ("true", "1", True)
    if isinstance(old, (int, float)):
        return type(old)(text)
    if isinstance(old, list) and isinstance(text, str):
        parts = [p.strip() for p in text.split(",") if p.strip()]
        return [type(old[0])(p) for p in parts] if old else parts
    return text


def make(operation, found):
    """A node of an operation, with the attributes of a file. Called by the engine."""
    node = operation()
    node.visit_attributes(_Loader(found))
    return node


def add_extension(core, extension):
    """Adds an extension, or a class of operations, to a core; whether it was one of Python."""
    if isinstance(extension, Extension) or (not isinstance(extension, type) and hasattr(extension, "_add_to")):
        extension._add_to(core)
        return True
    if isinstance(extension, type):
        OpExtension(extension)._add_to(core)
        return True
    return False
