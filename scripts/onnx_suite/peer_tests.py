"""The peers' own ONNX tests through Carafe: see the head of `scripts/onnx-peer-tests`.

OpenVINO writes its tests in C++ (`cpp_tests.py` reads them) with models as text protobuf. ONNX Runtime's test models carry
no values, so inputs are drawn and onnxruntime's own outputs are expected; a model that onnxruntime does not run with any of
the sizes that are tried is counted apart.
"""

import argparse
import fnmatch
import itertools
import json
import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import onnx
from google.protobuf import text_format

from crosscheck.engine import Engine
from crosscheck.workers import run_tasks

from . import cases, cli, cpp_tests, judge, peers, values

HELP = """
Runs the ONNX tests of OpenVINO or ONNX Runtime, read out of a checkout, through Carafe.

`openvino`: src/frontends/onnx/tests/onnx_import*.in.cpp and their models. A value agrees when it is within the tolerance
that the test states, or within 1e-5 of its size (1e-3 for f16, 1e-2 for bf16) where it states none in absolute terms.
`onnxruntime`: onnxruntime/test/testdata/**/*.onnx, each run by onnxruntime on drawn inputs. A value agrees when it is within
1e-3 of the largest value of its output (1e-2 for f16), integers within one unit where the model quantizes. Of what a model
draws at random only the shape is compared.
"""

EXAMPLES = """
To look at one test: KEEP/<suite>/<test>/ has the inputs, the expected outputs and, under out/, what Carafe wrote. The models
lie under KEEP/<suite>/models/ (openvino) or in the checkout (onnxruntime).
Exit code: 0 all agree, 1 some do not, 2 wrong usage.
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="onnx-peer-tests", description=textwrap.dedent(HELP), epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=("openvino", "onnxruntime"))
    parser.add_argument("checkout", metavar="CHECKOUT", type=Path, help="the peer's repository")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="pattern over test, source file or model; may be repeated")
    parser.add_argument("--anchor", action="store_true", help="also run the tests on the installed openvino and onnxruntime")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=cli.ROOT / "target" / "onnx-peer-tests",
                        help="where tests and outputs are written, default: target/onnx-peer-tests")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the verdict on every test")
    cli.add_engine_arguments(parser, seconds=20)
    parser.add_argument("-v", "--verbose", action="store_true", help="also name the tests that could not be read")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    if not args.carafe.exists():
        print(f"onnx-peer-tests: no binary at {args.carafe}; build it, or give --carafe PATH", file=sys.stderr)
        return 2
    keep = args.keep.resolve() / args.suite
    found, unread = (openvino_tests if args.suite == "openvino" else onnxruntime_tests)(args, keep)
    if not found:
        print(f"onnx-peer-tests: no test found in {args.checkout}", file=sys.stderr)
        return 2
    verdicts = {"carafe": ask_carafe(args, found)}
    if args.anchor:
        for peer in [p for p in peers.versions() if p != args.suite or args.suite == "openvino"]:
            verdicts[peer] = ask_peer(peer, args, found)
    return report(args, found, unread, verdicts)


def chosen(args, *texts):
    return not args.only or any(fnmatch.fnmatchcase(t.lower(), p.lower()) for t in texts for p in args.only)


# ---------------------------------------------------------------------------------------------
# Tests: {name: {"model": path, "folder": path, "inputs": {name: entry}, "outputs": [[name, entry]], "tolerance": ...}}
# ---------------------------------------------------------------------------------------------

def openvino_tests(args, keep):
    source = next((p for p in (args.checkout / "src/frontends/onnx/tests", args.checkout) if (p / "models").is_dir()), args.checkout)
    mirror(source / "models", keep / "models")
    found, unread = {}, {}
    for file in sorted(source.glob("*.cpp")):
        for test, runs in cpp_tests.tests(file.read_text()).items():
            if isinstance(runs, str):
                if chosen(args, test, file.name):
                    unread[test] = runs
                continue
            for k, run in enumerate(runs if not test.startswith("DISABLED_") else []):
                name = test if len(runs) == 1 else f"{test}.{k}"
                if not chosen(args, name, test, file.name, run.model):
                    continue
                try:
                    found[name] = openvino_test(keep, name, run)
                except (ValueError, IndexError, OSError, text_format.ParseError) as problem:
                    unread[name] = str(problem)
    return found, unread


def mirror(source, target):
    """The models as binary files, with the files beside them where they refer to them."""
    for file in source.rglob("*"):
        to = target / file.relative_to(source)
        if file.is_dir() or to.with_suffix(".onnx" if file.suffix == ".prototxt" else file.suffix).exists():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".prototxt":
            try:
                model = text_format.Parse(file.read_text(), onnx.ModelProto(), allow_field_number=True)
            except text_format.ParseError:
                continue  # some are broken on purpose
            to.with_suffix(".onnx").write_bytes(model.SerializeToString())
        else:
            shutil.copyfile(file, to)


def openvino_test(keep, name, run):
    path = keep / "models" / run.model
    model = onnx.load(path, load_external_data=False)
    infos = cases.fed(model, None)
    if run.outputs is None:  # inputs of any content: the model itself must be refused
        folder, rng = fresh(keep / name), np.random.default_rng(7)
        inputs = {i.name: values.save(folder, f"in_{k}", drawn(i, 2, 2, rng)) for k, i in enumerate(infos)}
        return {"model": str(path), "folder": str(folder), "inputs": inputs, "outputs": [], "random": False, "refused": True}
    if len(run.inputs) > len(infos):
        raise ValueError(f"{len(run.inputs)} inputs for a model of {len(infos)}")
    folder = fresh(keep / name)
    inputs = {i.name: values.save(folder, f"in_{k}", given_input(i, g)) for k, (i, g) in enumerate(zip(infos, run.inputs))}
    outputs = []
    for k, (info, given) in enumerate(zip(model.graph.output, run.outputs)):
        array = np.array(given.values, np.str_ if given.kind == "string" else np.float64 if given.kind in ("f32", "f64", "f16", "bf16") else None)
        array = array.astype(np.int64) if array.dtype == object else array
        # What a test states is checked; what the model declares need not be what it computes.
        shape = given.shape if int(np.prod(given.shape or [], dtype=np.int64)) == array.size else None
        np.save(folder / f"out_{k}.npy", array, allow_pickle=False)
        outputs.append([info.name, {"file": f"out_{k}.npy", "shape": shape}])
    tolerance = {"absolute": run.tolerance} if run.tolerance is not None else {}
    return {"model": str(path), "folder": str(folder), "inputs": inputs, "outputs": outputs, "random": is_random(model), **tolerance}


def is_random(model):
    """Whether outputs are drawn, so that only their shapes can be compared."""
    def drawn(node):
        trains = node.op_type in ("Dropout", "BiasDropout") and len(node.input) > 2
        return trains or node.op_type in ("Bernoulli", "Multinomial") or node.op_type.startswith("Random")
    return any(drawn(n) for n in model.graph.node)


def given_input(info, given):
    declared = info.type.tensor_type
    shape = given.shape if given.shape is not None else static_shape(info)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type))
    if shape is None:
        raise ValueError(f"input `{info.name}` has no shape")
    count = int(np.prod(shape, dtype=np.int64))
    if kind.name in ("int4", "uint4"):  # the test gives the packed bytes
        raw = np.array(given.values, np.int64).astype(np.uint8)
        return values.unpacked({"int4": "i4", "uint4": "u4"}[kind.name], raw.tobytes(), shape)
    if kind.kind == "O" or given.kind == "string":
        return values.tensor(np.array(given.values, object).reshape(shape))
    array = np.zeros(count, np.float64 if kind.kind not in "iub" else kind)
    array[:len(given.values)] = np.array(given.values[:count]).astype(array.dtype)
    return values.tensor(array.astype(kind).reshape(shape))


def static_shape(info):
    if not info.type.tensor_type.HasField("shape"):
        return None
    dims = info.type.tensor_type.shape.dim
    return [d.dim_value for d in dims] if all(d.HasField("dim_value") for d in dims) else None


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def onnxruntime_tests(args, keep):
    source = next((p for p in (args.checkout / "onnxruntime/test/testdata", args.checkout / "testdata") if p.is_dir()), args.checkout)
    files = {str(f.relative_to(source).with_suffix("")): f for f in sorted(source.rglob("*.onnx"))}
    files = {n: f for n, f in files.items() if chosen(args, n)}

    def ask(name, _tell):
        return onnxruntime_test(keep, name, files[name])

    found, unread = {}, {}
    for name, status, result in run_tasks([(n, "ask", n) for n in files], {"ask": ask}, args.jobs):
        if status == "done":
            found[name] = result
        else:
            unread[name] = result
    return found, unread


def onnxruntime_test(keep, name, file):
    """Draws inputs that onnxruntime takes; its outputs are what is expected."""
    model = onnx.load(file, load_external_data=False)
    folder = fresh(keep / name.replace("/", "__"))
    last = None
    for size, largest in itertools.product((3, 1, 2, 4, 8), (2, 1)):
        rng = np.random.default_rng(7)
        inputs = {i.name: drawn(i, size, largest, rng) for i in cases.fed(model, None)}
        try:
            expected = peers.run("onnxruntime", str(file), inputs)
            break
        except Exception as problem:  # whatever onnxruntime throws: the next size
            last = problem
    else:
        raise last
    outputs = []
    for k, (output, kind, array) in enumerate(expected):
        np.save(folder / f"out_{k}.npy", array, allow_pickle=False)
        outputs.append([output, {"file": f"out_{k}.npy", "shape": list(array.shape), "kind": kind}])
    quantizes = any("uant" in n.op_type or "QLinear" in n.op_type or "Integer" in n.op_type for n in model.graph.node)
    return {"model": str(file), "folder": str(folder), "outputs": outputs, "scaled": 1e-3, "slack": int(quantizes), "random": is_random(model),
            "inputs": {n: values.save(folder, f"in_{k}", v) for k, (n, v) in enumerate(inputs.items())}}


def drawn(info, size, largest, rng):
    if not info.type.HasField("tensor_type"):
        raise ValueError(f"input `{info.name}` is no tensor")
    declared = info.type.tensor_type
    # One size for one name, another where nothing is named.
    shape = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else size for d in declared.shape.dim]
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type))
    if kind.kind == "O":
        return values.tensor(np.array([f"{i}" for i in range(int(np.prod(shape)))], object).reshape(shape))
    if kind.kind == "b":
        return values.tensor(rng.integers(0, 2, shape).astype(bool))
    if kind.kind in "iu":
        return values.tensor(rng.integers(0, largest, shape).astype(kind))
    return values.tensor(rng.normal(size=shape).astype(np.float32).astype(kind))


# ---------------------------------------------------------------------------------------------
# The engines
# ---------------------------------------------------------------------------------------------

def ask_carafe(args, found):
    engine = Engine(args.carafe.resolve(), args.device, args.seconds)
    items = {}
    for name, test in found.items():
        folder = Path(test["folder"])
        inputs = {n: str(folder / e["file"]) for n, e in test["inputs"].items()}
        items[name] = {"model": test["model"], "inputs": inputs, "out": str(folder / "out"), "repeat": 1}
    answers = engine.work(list(items.values()), args.jobs)
    verdicts = {}
    for name, item in items.items():
        answer = answers[item["out"]]
        if found[name].get("refused"):
            verdicts[name] = None if answer.error else "runs, though it must be refused"
        else:
            verdicts[name] = judge.short(answer.error) if answer.error else mismatch(found[name], answer.outputs())
    return verdicts


def ask_peer(peer, args, found):
    def ask(name, _tell):
        test = found[name]
        inputs = {n: values.load(test["folder"], e) for n, e in test["inputs"].items()}
        try:
            outputs = peers.run(peer, test["model"], inputs)
        except Exception:
            if test.get("refused"):
                return None
            raise
        return "runs, though it must be refused" if test.get("refused") else mismatch(test, outputs)

    told = run_tasks([(n, "ask", n) for n in found], {"ask": ask}, args.jobs)
    return {name: result if status == "done" else f"{status}: {result}" for name, status, result in told}


def mismatch(test, outputs):
    """None, or what is wrong."""
    if len(outputs) < len(test["outputs"]):
        return f"{len(outputs)} outputs, expected {len(test['outputs'])}"
    for (name, entry), (_, kind, have) in zip(test["outputs"], outputs):
        want = np.load(Path(test["folder"]) / entry["file"], allow_pickle=False)
        if entry.get("kind", kind) != kind:
            return f"{name}: element type {kind}, expected {entry['kind']}"
        if kind in values.BITS and want.size < have.size:  # the test states the packed bytes
            count = have.size
            have, want = values.packed(values.Tensor(kind, have)), want.astype(np.int64).astype(np.uint8)
            if values.BITS[kind] == 4 and count % 2:  # the last half byte belongs to nobody
                have[-1], want[-1] = have[-1] & 15, want[-1] & 15
        if have.size != want.size or entry["shape"] is not None and list(have.shape) != list(entry["shape"]):
            stated = entry["shape"] if entry["shape"] is not None else f"{want.size} elements"
            return f"{name}: shape {list(have.shape)}, expected {stated}"
        problem = None if test["random"] else unequal(test, kind, want.ravel(), have.ravel())
        if problem:
            return f"{name}: {problem}"
    return None


def unequal(test, kind, want, have):
    if want.dtype.kind in "US" or have.dtype.kind in "US":
        return None if [str(x) for x in want] == [str(x) for x in have] else "strings differ"
    if want.size == 0:
        return None
    if kind[0] not in "bf" or kind == "boolean":
        worst = int(np.abs(want.astype(np.int64) - have.astype(np.int64)).max())
        return f"integers differ by {worst}" if worst > test.get("slack", 0) else None
    want, have = want.astype(np.float64), have.astype(np.float64)
    relative = {"f16": 1e-3, "bf16": 1e-2, "f8e4m3": 0.07, "f8e5m2": 0.13}.get(kind, 1e-5)
    if "absolute" in test:
        allowed = np.full(want.shape, test["absolute"])
    elif "scaled" in test:
        finite = np.abs(want[np.isfinite(want)])
        allowed = np.full(want.shape, max(test["scaled"], 10 * relative if kind != "f32" else 0) * max(finite.max(initial=0), 1e-3))
    else:
        allowed = relative * np.maximum(np.abs(np.where(np.isfinite(want), want, 0)), 1.0)
    # The infinity behind the largest number is one unit away from it.
    largest = np.finfo(np.float32).max
    want, have = (np.where(np.isinf(v) & (kind == "f32"), np.sign(v) * largest, v) for v in (want, have))
    with np.errstate(invalid="ignore"):
        same = (want == have) | np.isnan(want) & np.isnan(have) | (np.abs(want - have) <= allowed)
    if same.all():
        return None
    at = int(np.argmin(same))
    return f"{have[at]:.7g} at {at}, expected {want[at]:.7g} ({int((~same).sum())} of {same.size} differ)"


# ---------------------------------------------------------------------------------------------
# The report
# ---------------------------------------------------------------------------------------------

def report(args, found, unread, verdicts):
    others = [p for p in verdicts if p != "carafe"]
    for name in sorted(found):
        if verdicts["carafe"][name]:
            beside = "".join(f"  [{p}: {verdicts[p][name][:80] if verdicts[p][name] else 'agrees'}]" for p in others)
            print(f"{name}: {verdicts['carafe'][name]}{beside}")
    if args.verbose:
        for name, why in sorted(unread.items()):
            print(f"{name}: not read: {why}")
    for engine, told in verdicts.items():
        print(f"{engine}: {sum(not v for v in told.values())} of {len(found)} agree")
    print(f"{len(unread)} tests could not be {'read' if args.suite == 'openvino' else 'run by onnxruntime'}")
    if args.json:
        rows = {n: {e: v[n] for e, v in verdicts.items()} for n in found}
        args.json.write_text(json.dumps({"tests": rows, "unread": unread}, indent=1) + "\n")
    return 1 if any(verdicts["carafe"].values()) else 0
