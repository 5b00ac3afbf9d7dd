"""Items for the `carafe` binary, and the verdict on what an engine gave.

A verdict is (state, why). States: `pass`, `fail`, and `not expressible` for tests whose inputs or outputs have element
types that only ONNX knows.
"""

import re

import numpy as np
from crosscheck.compare import difference

from . import values


def inexpressible(case):
    """Why a test cannot be put to Carafe at all, or None."""
    for data in case["sets"]:
        for name, entry in [*data["inputs"].items(), *data["outputs"]]:
            for leaf in leaves(entry):
                if leaf["element_type"] in values.FOREIGN:
                    return f"`{name}` has element type {leaf['element_type']}"
    return None


def leaves(entry):
    if isinstance(entry, list):
        return [leaf for e in entry for leaf in leaves(e)]
    return [] if entry is None else [entry]


def short(error):
    """An error of Carafe without the path of the model, which the report names anyway."""
    return re.sub(r"^model `[^`]*`[:,] ", "", error)


def items(case, folder, work, convert=False):
    """What `carafe run --batch` is asked, one item for each data set."""
    asked = []
    for s, data in enumerate(case["sets"]):
        inputs = {}
        for i, (name, entry) in enumerate(data["inputs"].items()):
            if isinstance(entry, list):  # a sequence is the arrays of one .npz
                inputs[name] = str(work / f"in_{s}_{i}.npz")
                work.mkdir(parents=True, exist_ok=True)
                np.savez(inputs[name], *(t.array for t in values.load(folder, entry)))
            elif entry is not None:  # an optional without content is left out
                inputs[name] = str(folder / entry["file"])
        item = {"model": str(folder / "model.onnx"), "inputs": inputs, "out": str(work / f"set{s}"), "repeat": 1}
        if convert and s == 0:
            item["convert"] = str(work / "model.xml")
        asked.append(item)
    return asked


def verdict(case, folder, found_of_set):
    """Compares all data sets; `found_of_set(s)` gives [(name, element type, array)] or raises."""
    for s, data in enumerate(case["sets"]):
        expected = [t for name, entry in data["outputs"] for t in values.flat(name, values.load(folder, entry))]
        problem = mismatch(case, expected, found_of_set(s))
        if problem:
            return "fail", problem
    return "pass", ""


def mismatch(case, expected, found):
    rtol = max((rtol_of(case, kind) for _, kind, _ in expected), default=0.0)
    return difference({"op": "", "rtol": rtol, "atol": case["atol"]}, expected, found)


def rtol_of(case, element_type):
    # For bf16 two units in the last place, as ONNX itself allows.
    return max(case["rtol"], 2 ** -6) if element_type == "bf16" else case["rtol"]
