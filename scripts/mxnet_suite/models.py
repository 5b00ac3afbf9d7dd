"""Whole networks: the same input through MXNet, Carafe, and OpenVINO on what Carafe wrote."""

import argparse
import fnmatch
import json
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import openvino as ov

from . import reference

ROOT = Path(__file__).resolve().parents[2]

# No element is measured against less than this part of the largest of its output: sums of many cancel.
PART = 1e-2

HELP = """
Writes networks with seeded weights (Gluon's model zoo, SSD of both generations, a YOLOv3 head, a Faster R-CNN, segmentation, an
LSTM language model, a layer of BERT, a spatial transformer; those of GluonCV where it is installed), asks MXNet for their outputs, runs `carafe run` on the symbol and
`carafe convert`, runs OpenVINO on the IR, and prints the relative error of both against MXNet. Further models: put
NAME-symbol.json and NAME-NNNN.params anywhere under DIR, with NAME.inputs.json, {"data": [1, 3, 12, 12]}.

The relative error of an element is |found - expected| / max(|expected|, s), where s is a hundredth of the largest |expected| of
that output, but at least 1e-3; that of a model is the largest of its outputs.
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="mxnet-models", description=textwrap.dedent(HELP), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="where the models lie or are to be put")
    parser.add_argument("--list", action="store_true", help="list the networks and stop")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="pattern over names; may be repeated")
    parser.add_argument("--carafe", metavar="PATH", type=Path, default=ROOT / "target" / "release" / "carafe")
    parser.add_argument("--device", metavar="NAME", default="CPU")
    parser.add_argument("--tolerance", metavar="X", type=float, default=1e-4)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    if args.list:
        print("\n".join(written()))
        return 0
    if args.folder is None or not args.carafe.exists():
        print(f"mxnet-models: {'no folder given' if args.folder is None else f'no binary at {args.carafe}'}", file=sys.stderr)
        return 2
    wanted = lambda name: not args.only or any(fnmatch.fnmatchcase(name, p) for p in args.only)  # noqa: E731
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    print(f"{'model':<24} {'nodes':>6} {'MB':>7}  {'carafe':>9} {'openvino':>9}  seconds")
    for name in [*written(), *lying(folder)]:
        if wanted(name):
            rows[name] = row = check(args, folder, name)
            figures = [f"{row[k]:.1e}" if isinstance(row.get(k), float) else "-" for k in ("carafe", "openvino")]
            print(f"{name:<24} {row['nodes']:>6} {row['megabytes']:>7.1f}  {figures[0]:>9} {figures[1]:>9}  {row['seconds']:.1f}  {row.get('error', '')}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    good = sum(agrees(args, row) for row in rows.values())
    print(f"\n{good} of {len(rows)} models agree within {args.tolerance:g}")
    return 0 if good == len(rows) else 1


def agrees(args, row):
    return all(isinstance(row.get(k), float) and row[k] <= args.tolerance for k in ("carafe", "openvino"))


def written():
    """Networks that nets.py has. MXNet and OpenVINO do not live in one process."""
    done = subprocess.run([sys.executable, "-m", "mxnet_suite.reference"], cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    return done.stdout.split()


def lying(folder):
    return [str(f.relative_to(folder))[: -len(".inputs.json")] for f in sorted(folder.rglob("*.inputs.json"))]


class Model:
    """A network with what MXNet gives for it."""

    def __init__(self, folder, name, work):
        command = [sys.executable, "-m", "mxnet_suite.reference", name, folder, work]
        done = subprocess.run(command, cwd=ROOT / "scripts", env=reference.environment(name), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"MXNet cannot run it: {(done.stderr.strip() or 'it crashed').splitlines()[-1]}")
        arrays = np.load(work / "reference.npz")
        self.inputs = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in:")}
        self.outputs = [arrays[f"out:{i}"] for i in range(len(arrays.files) - len(self.inputs))]
        prefix = work / "net" if (work / "net-symbol.json").exists() else folder / name
        self.symbol = Path(f"{prefix}-symbol.json")
        self.params = sorted(prefix.parent.glob(f"{prefix.name}-*.params"))[-1]


def check(args, folder, name):
    work = folder / ".run" / name.replace("/", "-")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    row = {"nodes": 0, "megabytes": 0.0, "seconds": 0.0}
    try:
        net = Model(folder, name, work)
        row |= json.loads((work / "reference.json").read_text())
        start = time.perf_counter()
        answer = run_carafe(args, net, work)
        row["seconds"] = time.perf_counter() - start
        row["carafe"] = worst(net.outputs, answer)
        row["openvino"] = worst(net.outputs, run_openvino(args, net, work))
    except (RuntimeError, AssertionError) as problem:
        row["error"] = str(problem).strip().splitlines()[-1][:160]
    return row


def worst(expected, found):
    if len(expected) != len(found):
        raise AssertionError(f"{len(found)} outputs, expected {len(expected)}")
    for e, f in zip(expected, found):
        if e.shape != f.shape:
            raise AssertionError(f"an output is {f.shape}, expected {e.shape}")
    return max(error(e, f) for e, f in zip(expected, found))


def error(expected, found):
    expected, found = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    if not expected.size:
        return 0.0
    size = np.abs(expected)
    return float((np.abs(expected - found) / np.maximum(size, max(PART * size.max(), 1e-3))).max())


def carafe(args, *words):
    done = subprocess.run([args.carafe, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def shapes(net):
    return [f"{name}[{','.join(map(str, v.shape))}]" for name, v in net.inputs.items()]


def run_carafe(args, net, work):
    words = ["run", net.symbol, "--weights", net.params, "-d", args.device, "-o", work / "out", "--shape", ",".join(shapes(net))]
    if args.device == "CPU":
        words += ["--property", "INFERENCE_PRECISION_HINT=f32"]
    for name, value in net.inputs.items():
        np.save(work / f"{name}.npy", value)
        words += ["-i", f"{name}={work / f'{name}.npy'}"]
    carafe(args, *words)
    listed = json.loads((work / "out" / "outputs.json").read_text())["outputs"]
    return [np.load(work / "out" / e["file"]) for e in listed]


def run_openvino(args, net, work):
    words = ["convert", net.symbol, "--weights", net.params, "-o", work / "net.xml"]
    carafe(args, *words, "--input", ",".join(shapes(net)), "--compress_to_fp16=False")
    core = ov.Core()
    compiled = core.compile_model(core.read_model(work / "net.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    by_port = {p: net.inputs[n] for p in compiled.inputs for n in net.inputs if n in p.get_names() or p.get_node().get_friendly_name() == n}
    done = compiled(by_port)
    return [done[o] for o in compiled.outputs]
