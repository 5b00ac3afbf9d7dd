"""Whole networks: the same input through MXNet, Carafe, and OpenVINO on what Carafe wrote."""

import argparse
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np

from . import reference

ROOT = Path(__file__).resolve().parents[2]

# No element is measured against less than this part of the largest of its output: sums of many cancel.
PART = 1e-2

HELP = """
Writes networks with seeded weights (Gluon's model zoo, SSD of both generations, a YOLOv3 head, a Faster R-CNN, segmentation, an
LSTM language model, a layer of BERT, a spatial transformer; those of GluonCV where it is installed), asks MXNet for their outputs,
runs `carafe run` on the symbol and `carafe convert`, runs OpenVINO on the IR, and prints the relative error of both against
MXNet, which computes in doubles where it can; column `mxnet` is then the error of MXNet in floats. Further models: put
NAME-symbol.json and NAME-NNNN.params anywhere under DIR, with NAME.inputs.json, {"data": [1, 3, 12, 12]}.

The relative error of an element is |found - expected| / max(|expected|, s), where s is a hundredth of the largest |expected| of
that output, but at least 1e-3; that of a model is the largest of its outputs. Detections whose scores are nearer to each other
than the tolerance may stand in either order. Carafe must be within the tolerance. OpenVINO's error is that of its own sums: where
it is larger, it must be within twice what OpenVINO's kernels of AVX2 differ by from those it took (marked ~).
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
    print(f"{'model':<40} {'nodes':>6} {'MB':>7}  {'carafe':>9} {'openvino':>9}  {'mxnet':>9}  seconds")
    for name in [*written(), *lying(folder)]:
        if wanted(name):
            rows[name] = row = check(args, folder, name)
            figures = [f"{row[k]:.1e}" if isinstance(row.get(k), float) else "-" for k in ("carafe", "openvino", "mxnet")]
            figures[1] += "~" if agrees(args, row) and row["openvino"] > args.tolerance else " "
            words = f"{row['seconds']:.1f}  {row.get('error', '')}"
            print(f"{name:<40} {row['nodes']:>6} {row['megabytes']:>7.1f}  {figures[0]:>9} {figures[1]:>10} {figures[2]:>9}  {words}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    good = sum(agrees(args, row) for row in rows.values())
    print(f"\n{good} of {len(rows)} models agree within {args.tolerance:g}")
    return 0 if good == len(rows) else 1


def agrees(args, row):
    if not all(isinstance(row.get(k), float) for k in ("carafe", "openvino")):
        return False
    return row["carafe"] <= args.tolerance and row["openvino"] <= max(args.tolerance, 2 * row.get("kernels", 0.0))


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
        self.outputs, self.own = ([arrays[k] for k in arrays.files if k.startswith(kind)] for kind in ("out:", "own:"))
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
        row["carafe"] = worst(net.outputs, answer, args.tolerance)
        if net.own:
            row["mxnet"] = worst(net.outputs, net.own, args.tolerance)
        convert(args, net, work)
        found = run_openvino(work)
        row["openvino"] = worst(net.outputs, found, args.tolerance)
        if row["openvino"] > args.tolerance:
            row["kernels"] = worst(found, run_openvino(work, ONEDNN_MAX_CPU_ISA="AVX2"), args.tolerance)
    except (RuntimeError, AssertionError) as problem:
        row["error"] = str(problem).strip().splitlines()[-1][:160]
    return row


def worst(expected, found, tolerance):
    if len(expected) != len(found):
        raise AssertionError(f"{len(found)} outputs, expected {len(expected)}")
    for e, f in zip(expected, found):
        if e.shape != f.shape:
            raise AssertionError(f"an output is {f.shape}, expected {e.shape}")
    apart = max(error(e, f) for e, f in zip(expected, found))
    if apart > tolerance and (order := reordered(expected, found, tolerance)) is not None:
        return min(apart, max(error(e, f[:, order]) for e, f in zip(expected, found)))
    return apart


def reordered(expected, found, tolerance):
    """The rows of detections (label, score, box in one output or in three) in the order of those expected, as far as scores are too
    near to each other to have one; `None` for other outputs."""
    if len({e.shape[:2] for e in expected}) > 1 or any(e.ndim < 2 or e.shape[0] != 1 for e in expected):
        return None
    rows = [np.concatenate([x.reshape(x.shape[1], -1) for x in side], axis=1).astype(np.float64) for side in (expected, found)]
    if rows[0].shape[1] != 6:
        return None
    wanted, had = rows
    left = list(range(len(had)))
    order = []
    for row in wanted:
        near = [i for i in left if abs(had[i, 1] - row[1]) <= tolerance * max(abs(row[1]), PART)]
        best = min(near or left[:1], key=lambda i: np.abs(had[i] - row).max())
        left.remove(best)
        order.append(best)
    return order


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


def convert(args, net, work):
    words = ["convert", net.symbol, "--weights", net.params, "-o", work / "net.xml"]
    carafe(args, *words, "--input", ",".join(shapes(net)), "--compress_to_fp16=False")


def run_openvino(work, **environment):
    """In a process of its own: which kernels it takes is decided once."""
    command = [sys.executable, "-m", "mxnet_suite.peer", work]
    done = subprocess.run(command, cwd=ROOT / "scripts", env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"OpenVINO cannot run it: {(done.stderr.strip() or 'it crashed').splitlines()[-1]}")
    arrays = np.load(work / "openvino.npz")
    return [arrays[f"{i}"] for i in range(len(arrays.files))]
