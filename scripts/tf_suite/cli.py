"""Options of `scripts/tf-models`."""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELP = """
Runs TensorFlow models (SavedModel folders, frozen .pb, .tflite; .onnx twins too) through Carafe and compares with what
TensorFlow and the TFLite interpreter computed.

A model takes part when a file X.npz lies beside it (saved_model.npz beside the folder saved_model, int8.tflite.npz beside
int8.tflite) with entries `in:NAME` and `out:NAME`. `--make` writes Keras networks with seeded weights in every format
together with these files, `--references` writes the .npz of other models that lie under DIR; both need tensorflow, tf2onnx
and ai-edge-litert, the comparison itself needs numpy alone.

Floats agree within a relative error of 1e-4 (an element is measured against at least a thousandth of the largest of its
output), integers within one step. Where `--references` found that the kernels of the TFLite interpreter differ by more among
themselves (`own`), floats may differ by twice and integers by as much.
"""
EXAMPLES = """
examples:
  scripts/tf-models DIR --make                             write all networks into DIR (takes a while)
  scripts/tf-models DIR --make resnet50 --make lstm        some of them
  scripts/tf-models DIR --lite-forms lstm                  as TFLite with quantized weights, halves, uint8, int16
  scripts/tf-models DIR --references                       reference outputs for what else lies in DIR
  scripts/tf-models DIR                                    run everything
  scripts/tf-models DIR --only 'mobilenet_v2/*'            some of it
  scripts/tf-models DIR --openvino venv/bin/python         also the IR that Carafe writes, in OpenVINO

Exit code: 0 every model agrees, 1 some do not, 2 wrong usage.
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="tf-models", description=HELP, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path, help="where the models lie or are to be put")
    parser.add_argument("--make", metavar="NET", nargs="?", const="*", action="append", default=[], help="write networks and stop")
    parser.add_argument("--lite-forms", metavar="NET", action="append", default=[], help="write networks in the other forms of TFLite and stop")
    parser.add_argument("--references", action="store_true", help="write missing reference outputs and stop")
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[], help="pattern over folder/file; may be repeated")
    parser.add_argument("--openvino", metavar="PYTHON", help="a Python that has OpenVINO; runs the IR of each model")
    parser.add_argument("--ir", action="store_true", help="also convert, and count the Transposes of the IR")
    newest = max((ROOT / "target" / p / "carafe" for p in ("release", "debug")), key=lambda p: p.stat().st_mtime if p.exists() else 0)
    parser.add_argument("--carafe", metavar="PATH", type=Path, default=newest, help="default: the newest under target/")
    parser.add_argument("--device", "-d", metavar="NAME", default="CPU", help="default: %(default)s")
    parser.add_argument("--seconds", metavar="N", type=int, default=600, help="patience with one model, default: %(default)s")
    parser.add_argument("--tolerance", metavar="X", type=float, default=1e-4, help="relative error allowed, default: %(default)s")
    parser.add_argument("--steps", metavar="N", type=int, default=1, help="difference of integers allowed, default: %(default)s")
    parser.add_argument("--plain-names", action="store_true", help="give inputs of frozen graphs by node name, without `:0`")
    parser.add_argument("--work", metavar="DIR", type=Path, help="where inputs and outputs go, default: DIR/.run")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all errors")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    folder = args.folder.resolve()
    if args.make or args.lite_forms or args.references:
        try:
            from . import lite_forms, make, nets, packages
        except ModuleNotFoundError as missing:
            sys.exit(f"tf-models: Python module `{missing.name}` is missing: pip install tensorflow-cpu ai-edge-litert tf2onnx")
        for name in nets.NETS if "*" in args.make else args.make:
            make.make(name, folder)
        for name in args.lite_forms:
            lite_forms.write(name, folder)
        if args.references:
            packages.references(folder)
        return 0
    if not args.carafe.exists():
        print(f"tf-models: no binary at {args.carafe}; build it with `cargo build --release`, or give --carafe PATH", file=sys.stderr)
        return 2
    from . import models
    rows = models.run_all(args, folder)
    good = sum(row["agrees"] for row in rows.values())
    print(f"\n{good} of {len(rows)} models agree")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if good == len(rows) else 1
