"""Models out of a folder that `scripts/tf-models` filled: SavedModels and .tflite files with an .npz of inputs beside each.

The file `model.onnx` beside a SavedModel is the same network through tf2onnx: the engine `carafe-onnx` runs Carafe on it, which
tells what the way through TensorFlow's format costs.
"""

import fnmatch
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tf_suite import reference

from . import place

TWIN = "model.onnx"


@dataclass(frozen=True)
class Entry:
    name: str
    file: Path
    origin = "scripts/tf-models"

    @property
    def what(self):
        return "SavedModel" if self.file.is_dir() else "TFLite"

    def files(self, engines):
        """{engine: (model, inputs)} of those that read this format."""
        suits = {"tensorflow": self.file.is_dir(), "tflite": not self.file.is_dir(), "onnxruntime": False}
        found = {e: inputs_of(self.file, self.name) for e in engines if suits.get(e, True) and e != "carafe-onnx"}
        twin = self.file.with_name(TWIN)
        if self.file.is_dir() and reference.npz_of(twin).exists():
            found |= {e: inputs_of(twin, f"{self.name}.onnx") for e in ("carafe-onnx", "onnxruntime") if e in engines}
        return {e: found[e] for e in engines if e in found}


def inputs_of(model, name):
    home = place.work() / name.replace("/", "-")
    home.mkdir(parents=True, exist_ok=True)
    feed, _ = reference.read(model)
    np.savez(home / "inputs.npz", **feed)
    return model, home / "inputs.npz"


def chosen(root, patterns):
    """Entries by name, as `mobilenet_v2/saved_model`; without patterns all, one for each network and format."""
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"`{root}` is no folder; `scripts/tf-models DIR --make` fills one")
    found = []
    for npz in sorted(root.rglob("*.npz")):
        model = npz.with_suffix("")
        name = str(model.relative_to(root))
        suits = (model / "saved_model.pb").exists() or model.suffix == ".tflite" and model.exists()
        if suits and (not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns)):
            found.append(Entry(name, model))
    if not found:
        raise ValueError(f"no model under `{root}`" + (f" matches {', '.join(patterns)}" if patterns else ""))
    return found
