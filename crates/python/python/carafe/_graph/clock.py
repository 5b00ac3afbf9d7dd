"""Counts edits of graphs, so that a model knows whether what it last handed to the engine still holds."""

_edits = 0


def touch():
    """Something in some graph changed."""
    global _edits
    _edits += 1


def now():
    """How often `touch` was called."""
    return _edits
