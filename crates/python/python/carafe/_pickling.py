"""How models are pickled and what they become again.

One that was read from files and not edited since is pickled as their paths, with a hash of each, and the properties of its compilation. All
others are pickled with what is in them: a model as IR, a compiled one as what `export_model` gives.
"""

import functools
import hashlib
import os


@functools.lru_cache(maxsize=1)
def _core():
    from carafe._core import Core

    return Core()


def _stamp(path):
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


class Origin:
    """The files that a model was read from, as they were then."""

    __slots__ = ("config", "native", "source", "stamps", "weights")

    def __init__(self, source, weights, files, native=None, config=None):
        self.source = os.path.abspath(source)
        self.weights = os.path.abspath(weights) if weights else None
        self.native = native
        self.config = config
        self.stamps = {}
        for file in {os.path.abspath(file) for file in files}:
            self.stamps[file] = _stamp(file)

    def compiled(self, config):
        """The same for a compiled model."""
        made = Origin.__new__(Origin)
        made.source, made.weights, made.native, made.stamps, made.config = self.source, self.weights, None, self.stamps, dict(config)
        return made

    def hashes(self):
        """Hashes of the files; `None` when they are not what they were when the model was read."""
        try:
            if any(_stamp(file) != stamp for file, stamp in self.stamps.items()):
                return None
            return {file: _hash(file) for file in sorted(self.stamps)}
        except OSError:
            return None


def origin_of(source, weights, files, native=None):
    """Where a model came from; `None` when it was not from files alone."""
    if not isinstance(source, (str, os.PathLike)) or not files:
        return None
    if weights is not None and not isinstance(weights, (str, os.PathLike)):
        return None
    try:
        return Origin(source, weights, files, native)
    except OSError:
        return None


@functools.lru_cache(maxsize=64)
def _hash_of(path, size, changed):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(file)


def _digest(file):
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _hash(path):
    return _hash_of(path, *_stamp(path))


def _check(hashes):
    for file, wanted in hashes.items():
        if not os.path.exists(file):
            raise RuntimeError(
                f"`{file}` is gone: the pickled model was read from it; bring the file back, or pickle the model where it is"
            )
        found = _hash(file)
        if found != wanted:
            raise RuntimeError(
                f"`{file}` has changed since the model was pickled: expected SHA-256 {wanted}, found {found}; pickle the model anew"
            )


def unedited_origin(value):
    """Where a model came from, if it still is what was read."""
    origin = getattr(value, "_origin", None)
    return origin if origin is not None and not value._expanded and value._native is origin.native else None


def reduce_model(value):
    """How a model is pickled."""
    from carafe import _native
    from carafe._graph.rt_info import as_files_have_it

    origin = unedited_origin(value)
    hashes = origin and origin.hashes()
    if hashes:
        return model_of_files, (origin.source, origin.weights, hashes)
    with as_files_have_it(value):
        return model, _native._to_ir(value)


def reduce_compiled(value):
    """How a compiled model is pickled."""
    origin = value._origin
    hashes = origin and origin.hashes()
    if hashes:
        return compiled_of_files, (origin.source, origin.weights, value._device, origin.config, hashes)
    return compiled_model, (value.export_model().getvalue(), value._device)


def model_of_files(source, weights, hashes):
    """A model of its files, which must be what they were."""
    _check(hashes)
    return _core().read_model(source, weights)


def compiled_of_files(source, weights, device, config, hashes):
    """A model of its files, which must be what they were, compiled again."""
    _check(hashes)
    return _core().compile_model(source, device, config, weights=weights)


def compiled_model(blob, device):
    """A compiled model of its exported bytes."""
    return _core().import_model(blob, device)


def model(xml, weights):
    """A model of the two files of its IR."""
    return _core().read_model(xml, weights)
