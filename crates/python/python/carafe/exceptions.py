"""Exceptions that come from the Python layer. Failures of the engine are `RuntimeError`."""


class OVError(Exception):
    """Base of these exceptions."""


class UserInputError(OVError):
    """A value that a user gave is not allowed."""


class OVTypeError(OVError, TypeError):
    """A type that has no counterpart."""
