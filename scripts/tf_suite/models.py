"""Runs model files through Carafe, and their IR through OpenVINO; compares with the reference beside each file."""

import fnmatch
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from crosscheck.engine import Engine

from . import compare, reference

PEER = Path(__file__).with_name("peer_openvino.py")


def found_in(folder, only):
    """{name: file or folder} of every model with a reference."""
    chosen = {}
    for npz in sorted(folder.rglob("*.npz")):
        model = npz.with_suffix("")
        name = str(model.relative_to(folder)) if model.exists() else ""
        if name and ".run" not in name and (not only or any(fnmatch.fnmatchcase(name, p) for p in only)):
            chosen[name] = model
    return chosen


def run_all(args, folder):
    """{model: row}, a row told as soon as it is there."""
    work = args.work or folder / ".run"
    rows = {}
    peer = Peer(args.openvino) if args.openvino else None
    for name, model in found_in(folder, args.only).items():
        place = work / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        rows[name] = run(args, peer, model, place)
        rows[name]["agrees"] = agrees(args, rows[name])
        tell(name, rows[name])
    return rows


def run(args, peer, model, place):
    feed, wanted = reference.read(model)
    given = {}
    for i, (name, value) in enumerate(feed.items()):
        file = place / f"in_{i}.npy"
        np.save(file, value.astype(str) if value.dtype.kind == "S" else value)
        given[name.removesuffix(":0") if args.plain_names else name] = str(file)
    item = {"model": str(model), "inputs": given, "out": str(place / "carafe"), "repeat": 1}
    if peer or args.ir:
        item["convert"] = str(place / "model.xml")
    answer = Engine(args.carafe.resolve(), args.device, args.seconds).work([item], 1)[item["out"]]
    row = {"own": compare.spread(wanted, reference.others(model))}
    if answer.error:
        row["error"] = answer.error
    else:
        row["carafe"] = compare.outputs(wanted, [(n, a) for n, _, a in answer.outputs()])
    if answer.converted:
        row["transposes"] = len(re.findall(r'type="Transpose"', answer.converted.read_text()))
        if peer:
            row["openvino"] = peer.run(answer.converted, feed, wanted, place)
    elif "convert" in item:
        row["openvino"] = {"convert": answer.convert_error}
    return row


class Peer:
    """OpenVINO in a process of its own, started again when it dies."""

    def __init__(self, python):
        self.python, self.process = python, None

    def run(self, model, feed, wanted, place):
        np.savez(place / "in.npz", **feed)
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([self.python, PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(f"{model}\t{place / 'in.npz'}\t{place / 'out.npz'}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        if said != "ok":
            return {"openvino": said or "the process died"}
        with np.load(place / "out.npz") as found:
            return compare.outputs(wanted, [(str(n), found[str(i)]) for i, n in enumerate(found["names"])])


def agrees(args, row):
    return "error" not in row and all(compare.agrees(row[e], args.tolerance, args.steps, row["own"]) for e in ("carafe", "openvino") if e in row)


def tell(name, row):
    said = f"FAILS: {row['error'][:300]}" if "error" in row else compare.words(row["carafe"])
    if "openvino" in row:
        said += f"   OpenVINO: {compare.words(row['openvino'])}"
    if any(row["own"].values()):
        said += f"   own: {max(row['own'].values()):.1e}"
    if "transposes" in row:
        said += f"   {row['transposes']} Transposes"
    print(f"{'agrees ' if row['agrees'] else 'DIFFERS'} {name:<48} {said}", flush=True)
