"""Chooses the small set of cases that is committed for `cargo test` and writes it.

Every operation gives its first case that is marked as a fixture; the families about files, control flow and element
types give all of theirs while the budget lasts. Where the CPU device leaves the reference, the reference is written,
unless the case trusts the CPU more.
"""

import shutil
from pathlib import Path

from . import compare, store

WEIGHTS_LIMIT = 4 * 1024
TOTAL_LIMIT = 1_900_000
WHOLE_FAMILIES = {"files", "control", "element_types"}


def write(keep, records, target):
    """Writes the selection of `records` (name -> record of the cache under `keep`) to `target`; returns (count, bytes)."""
    target = Path(target)
    if target.exists():
        shutil.rmtree(target)
    seen, first, rest = set(), [], []
    for name, record in records.items():
        if not record.get("fixture") or not (record["outputs"] or record.get("reference")):
            continue
        weights = keep / name / "model.bin"
        if weights.exists() and weights.stat().st_size > WEIGHTS_LIMIT:
            continue
        if record["op"] not in seen:
            seen.add(record["op"])
            first.append(name)
        elif record["family"] in WHOLE_FAMILIES:
            rest.append(name)
    total = count = 0
    for name in first + rest:
        size = sum(f.stat().st_size for f in files_of(keep / name, records[name]))
        if total + size > TOTAL_LIMIT:
            continue
        copy_case(keep / name, records[name], target / store.file_safe(name))
        total, count = total + size, count + 1
    return count, total


def expected_of(record):
    """The entries of the outputs to believe: the reference where CPU leaves it, otherwise the CPU."""
    leaves = record.get("cpu_leaves_reference")
    if record.get("reference") and (not record["outputs"] or (leaves and record.get("trust") != "cpu")):
        return record["reference"]
    return record["outputs"]


def files_of(folder, record):
    return [folder / n for n in [*files_to_copy(folder, record), *[o["file"] for o in expected_of(record)]]]


def copy_case(source, record, target):
    target.mkdir(parents=True)
    outputs = []
    for entry in expected_of(record):
        file = "out_" + entry["file"].split("_", 1)[1]
        shutil.copyfile(source / entry["file"], target / file)
        kind = entry["element_type"]
        rtol, atol = compare.bounds(record["op"], kind, record["rtol"], record["atol"])
        outputs.append({"name": entry["name"], "file": file, "element_type": kind, "rtol": rtol, "atol": atol})
    for name in files_to_copy(source, record):
        shutil.copyfile(source / name, target / name)
    store.write_json(target / "case.json", {
        "op": record["op"], "version": record["version"], "inputs": record["inputs"], "outputs": outputs,
        "rtol": max((o["rtol"] for o in outputs), default=0.0), "atol": max((o["atol"] for o in outputs), default=0.0),
        "repeat": record["repeat"], "judge": record["judge"]})


def files_to_copy(source, record):
    yield "model.xml"
    if 'type="Const"' in (source / "model.xml").read_text():
        yield "model.bin"
    yield from record["inputs"].values()
