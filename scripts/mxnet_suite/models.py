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

os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")
os.environ.setdefault("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import openvino as ov  # noqa: E402

from caffe_suite.compare import relative_error  # noqa: E402

from . import nets  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

HELP = """
Writes networks with seeded weights (Gluon's model zoo, SSD of both generations, a YOLOv3 head, a Faster R-CNN, segmentation, an
LSTM language model, a layer of BERT, a spatial transformer), asks MXNet for their outputs, runs `carafe run` on the symbol and
`carafe convert`, runs OpenVINO on the IR, and prints the relative error of both against MXNet. Further models: put
NAME-symbol.json and NAME-NNNN.params anywhere under DIR, with NAME.inputs.json, {"data": [1, 3, 12, 12]}.

The relative error of an element is |found - expected| / max(|expected|, s), where s is a thousandth of the largest |expected| of
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
        print("\n".join(nets.NETS))
        return 0
    if args.folder is None or not args.carafe.exists():
        print(f"mxnet-models: {'no folder given' if args.folder is None else f'no binary at {args.carafe}'}", file=sys.stderr)
        return 2
    wanted = lambda name: not args.only or any(fnmatch.fnmatchcase(name, p) for p in args.only)  # noqa: E731
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    print(f"{'model':<24} {'nodes':>6} {'MB':>7}  {'carafe':>9} {'openvino':>9}  seconds")
    for name, make in [*nets.NETS.items(), *found(folder).items()]:
        if wanted(name):
            rows[name] = row = check(args, folder, name, make)
            figures = [f"{row[k]:.1e}" if isinstance(row.get(k), float) else "-" for k in ("carafe", "openvino")]
            print(f"{name:<24} {row['nodes']:>6} {row['megabytes']:>7.1f}  {figures[0]:>9} {figures[1]:>9}  {row['seconds']:.1f}  {row.get('error', '')}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    good = sum(agrees(args, row) for row in rows.values())
    print(f"\n{good} of {len(rows)} models agree within {args.tolerance:g}")
    return 0 if good == len(rows) else 1


def agrees(args, row):
    return all(isinstance(row.get(k), float) and row[k] <= args.tolerance for k in ("carafe", "openvino"))


def found(folder):
    """Models that lie under the folder already."""
    models = {}
    for file in sorted(folder.rglob("*.inputs.json")):
        prefix = str(file)[: -len(".inputs.json")]
        models[str(file.relative_to(folder))[: -len(".inputs.json")]] = lambda prefix=prefix, file=file: stored(prefix, file)
    return models


def stored(prefix, file):
    symbol = mx.sym.load(f"{prefix}-symbol.json")
    params = sorted(Path(prefix).parent.glob(f"{Path(prefix).name}-*.params"))[-1]
    arrays = mx.nd.load(str(params))
    args = {k[4:]: v for k, v in arrays.items() if k.startswith("arg:")}
    aux = {k[4:]: v for k, v in arrays.items() if k.startswith("aux:")}
    shapes = json.loads(file.read_text())
    net = nets.Net(symbol, {k: v for k, v in args.items() if k in symbol.list_arguments()}, aux, {k: nets.picture(*s) for k, s in shapes.items()})
    net.files = (Path(f"{prefix}-symbol.json"), params)
    return net


def check(args, folder, name, make):
    work = folder / ".run" / name.replace("/", "-")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    net = make()
    row = {"nodes": len(json.loads(net.symbol.tojson())["nodes"]), "megabytes": sum(v.size for v in net.args.values()) * 4e-6}
    if hasattr(net, "files"):
        symbol, params = net.files
    else:
        net.save(str(work / "net"))
        symbol, params = work / "net-symbol.json", work / "net-0000.params"
    expected = net.run()
    start = time.perf_counter()
    try:
        row["carafe"] = worst(expected, run_carafe(args, net, symbol, params, work))
        row["seconds"] = time.perf_counter() - start
        row["openvino"] = worst(expected, run_openvino(args, net, symbol, params, work))
    except (RuntimeError, AssertionError) as problem:
        row["error"] = str(problem).strip().splitlines()[-1][:160]
    row.setdefault("seconds", time.perf_counter() - start)
    return row


def worst(expected, found):
    if len(expected) != len(found):
        raise AssertionError(f"{len(found)} outputs, expected {len(expected)}")
    for e, f in zip(expected, found):
        if e.shape != f.shape:
            raise AssertionError(f"an output is {f.shape}, expected {e.shape}")
    return max(float(relative_error(f, e)) for e, f in zip(expected, found))


def carafe(args, *words):
    done = subprocess.run([args.carafe, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def shapes(net):
    names = ",".join(net.inputs)
    return names, ",".join("[" + ",".join(map(str, v.shape)) + "]" for v in net.inputs.values())


def run_carafe(args, net, symbol, params, work):
    words = ["run", symbol, "--weights", params, "-d", args.device, "-o", work / "out"]
    for name, value in net.inputs.items():
        np.save(work / f"{name}.npy", value)
        words += ["-i", f"{name}={work / f'{name}.npy'}"]
    names, sizes = shapes(net)
    carafe(args, *words, "--shape", ",".join(f"{n}{s}" for n, s in zip(net.inputs, sizes.replace("],[", "]|[").split("|"))))
    listed = json.loads((work / "out" / "outputs.json").read_text())
    entries = listed["outputs"] if isinstance(listed, dict) and "outputs" in listed else listed
    entries = entries.values() if isinstance(entries, dict) else entries
    return [np.load(work / "out" / e["file"]) for e in entries]


def run_openvino(args, net, symbol, params, work):
    names, sizes = shapes(net)
    carafe(args, "convert", symbol, "--weights", params, "-o", work / "net.xml", "--input", names, "--input_shape", sizes, "--compress_to_fp16=False")
    core = ov.Core()
    model = core.read_model(work / "net.xml")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    by_name = {}
    for port in compiled.inputs:
        for name in net.inputs:
            if name in port.get_names() or port.get_node().get_friendly_name() == name:
                by_name[port] = net.inputs[name]
    done = compiled(by_name)
    return [done[o] for o in compiled.outputs]
