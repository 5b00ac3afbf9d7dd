"""What pickled models become again."""

import functools


@functools.lru_cache(maxsize=1)
def _core():
    from carafe._core import Core

    return Core()


def reduce_model(value):
    """How a model is pickled: as the two files of its IR."""
    from carafe import _native
    from carafe._graph.rt_info import as_files_have_it

    with as_files_have_it(value):
        return model, _native._to_ir(value)


def compiled_model(blob, device):
    """A compiled model of its exported bytes."""
    return _core().import_model(blob, device)


def model(xml, weights):
    """A model of the two files of its IR."""
    return _core().read_model(xml, weights)
