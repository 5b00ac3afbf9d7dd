"""The directory form of a case, the same for the cache, for `cargo test` fixtures and for real networks.

::

    <case>/case.json     op, version, inputs {name: file}, outputs [{name, file, element_type}], rtol, atol,
                         repeat, judge
    <case>/model.xml     and model.bin
    <case>/in_*.npy      one per input
    <case>/out_*.npy     one per output, in model order
    <case>/ref_*.npy     only in the cache: outputs by the reference where it gave any
"""

import json
import re
from pathlib import Path

import numpy as np


def file_safe(name):
    """A name usable as a file name everywhere."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, sort_keys=False) + "\n")


def read_case(folder):
    return json.loads((Path(folder) / "case.json").read_text())


def save_arrays(folder, prefix, named):
    """Writes arrays as <prefix>_<name>.npy; returns the file names in order."""
    files = []
    for name, array in named:
        file = f"{prefix}_{file_safe(name)}.npy"
        np.save(Path(folder) / file, array, allow_pickle=False)
        files.append(file)
    return files


def load_outputs(folder, entries):
    """Reads [(name, element type, array)] for entries of `outputs` or `reference`."""
    return [(e["name"], e.get("element_type"), np.load(Path(folder) / e["file"], allow_pickle=False))
            for e in entries]
