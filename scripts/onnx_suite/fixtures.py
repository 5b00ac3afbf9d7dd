"""Chooses the small set of tests that is committed for `cargo test` and writes it.

Operations take turns, the smallest tests of each first, until the number or the size is reached. The form is that of the
other fixtures of the testkit: case.json, model.onnx, in_*.npy, out_*.npy.
"""

import shutil

from crosscheck import store
from crosscheck.dtypes import FLOATS

from . import judge, values

MOST_TESTS = 250
MOST_BYTES = 1_400_000
LARGEST = 24_000


def write(keep, passing, target):
    """Writes the selection of `passing` {name: case}; returns (count, bytes)."""
    queues = {}
    for name, case in passing.items():
        if case["kind"] == "node" and len(case["sets"]) == 1 and "_expanded" not in name:
            size = sum(f.stat().st_size for f in files(keep / name, case))
            if size <= LARGEST:
                queues.setdefault(case["op"], []).append((size, name))
    for queue in queues.values():
        queue.sort(reverse=True)
    shutil.rmtree(target, ignore_errors=True)
    total = count = 0
    while any(queues.values()):
        for queue in queues.values():
            if not queue:
                continue
            size, name = queue.pop()
            if count < MOST_TESTS and total + size <= MOST_BYTES:
                copy(keep / name, passing[name], target / store.file_safe(name))
                total, count = total + size, count + 1
    return count, total


def files(folder, case):
    entries = [*case["sets"][0]["inputs"].values(), *(v for _, v in case["sets"][0]["outputs"])]
    return [folder / "model.onnx", *(folder / leaf["file"] for e in entries for leaf in judge.leaves(e))]


def copy(source, case, target):
    target.mkdir(parents=True)
    shutil.copyfile(source / "model.onnx", target / "model.onnx")
    data = case["sets"][0]
    inputs = {n: save_input(target, n, values.load(source, e)) for n, e in data["inputs"].items()}
    tensors = [t for n, e in data["outputs"] for t in values.flat(n, values.load(source, e))]
    outputs = store.save_arrays(target, "out", [(f"{i}_{n}", a) for i, (n, _, a) in enumerate(tensors)])
    rows = []
    for (name, kind, _), file in zip(tensors, outputs):
        rtol, atol = (judge.rtol_of(case, kind), case["atol"]) if kind in FLOATS else (0.0, 0.0)
        rows.append({"name": name, "file": file, "element_type": kind, "rtol": rtol, "atol": atol})
    store.write_json(target / "case.json", {
        "op": case["op"], "version": case["opset"], "inputs": inputs, "outputs": rows,
        "rtol": max((r["rtol"] for r in rows), default=0.0), "atol": max((r["atol"] for r in rows), default=0.0),
        "repeat": 1, "judge": "values"})


def save_input(target, name, value):
    """The file of a tensor, a list of them for a sequence, None for an optional without content."""
    if value is None:
        return None
    if isinstance(value, list):
        return [save_input(target, f"{name}_{i}", v) for i, v in enumerate(value)]
    return store.save_arrays(target, "in", [(name, value.array)])[0]
