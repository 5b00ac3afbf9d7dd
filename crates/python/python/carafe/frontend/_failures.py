"""Exceptions of front ends."""


class GeneralFailure(Exception):
    """Something that has no name of its own."""


class InitializationFailure(Exception):
    """A front end could not be made ready."""


class NotImplementedFailure(Exception):
    """A front end has no such function."""


class OpConversionFailure(Exception):
    """A node could not be converted."""


class OpValidationFailure(Exception):
    """An operation that a conversion made is not valid."""
