"""What pickled models become again."""

import functools


@functools.lru_cache(maxsize=1)
def _core():
    from carafe._core import Core

    return Core()


def compiled_model(blob, device):
    """A compiled model of its exported bytes."""
    return _core().import_model(blob, device)


def model(xml, weights):
    """A model of the two files of its IR."""
    return _core().read_model(xml, weights)
