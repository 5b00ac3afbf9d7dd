"""Decorators for factories of nodes and for old names."""

import functools
import warnings

from .types import as_node


def _named(node, name):
    if name is not None:
        node.friendly_name = name
    return node


def nameable_op(function):
    """Gives the node that a function makes the name of its argument `name`."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return _named(function(*args, **kwargs), kwargs.get("name"))

    return wrapper


def unary_op(function):
    """Makes a constant of the first argument where that is a number or an array."""

    @functools.wraps(function)
    def wrapper(value, *args, **kwargs):
        return _named(function(as_node(value, name=kwargs.get("name")), *args, **kwargs), kwargs.get("name"))

    return wrapper


def binary_op(function):
    """Makes constants of the first two arguments where they are numbers or arrays."""

    @functools.wraps(function)
    def wrapper(left, right, *args, **kwargs):
        name = kwargs.get("name")
        return _named(function(as_node(left, name=name), as_node(right, name=name), *args, **kwargs), name)

    return wrapper


def custom_preprocess_function(function):
    """For a step of preprocessing: the node that it makes as an output."""

    @functools.wraps(function)
    def wrapper(node):
        made = function(node)
        return made.output(0) if hasattr(made, "output") else made

    return wrapper


def deprecation_warning(function_name, version="", message="", stacklevel=2):
    """Warns that a function will go."""
    text = f"{function_name} is deprecated{f' and will be removed in version {version}' if version else ''}"
    warnings.warn(f"{text}. {message}" if message else text, DeprecationWarning, stacklevel=stacklevel)


def deprecated(name=None, version="", message="", stacklevel=2):
    """Warns when a function is called that will go."""

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            deprecation_warning(name if name is not None else function.__name__, version, message, stacklevel + 1)
            return function(*args, **kwargs)

        return wrapper

    return decorator


class classproperty:  # noqa: N801
    """A property of a class."""

    def __init__(self, function):
        self._function = function

    def __get__(self, instance, owner=None):
        return self._function.__func__(owner) if isinstance(self._function, classmethod) else self._function(owner)


def deprecatedclassproperty(name=None, version="", message="", stacklevel=2):
    """A property of a class that warns."""
    return lambda function: classproperty(deprecated(name, version, message, stacklevel)(function))
