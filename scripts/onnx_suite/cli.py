"""Arguments, the order of the stages, and the report."""

import argparse
import fnmatch
import json
import shutil
import sys
import textwrap
import time
from pathlib import Path

from crosscheck.engine import Engine
from crosscheck.workers import run_tasks

from . import cases, fixtures, judge, peers, reasons, values

ROOT = Path(__file__).resolve().parents[2]

HELP = """
Runs the backend tests that the `onnx` package carries (node tests, simple and converted models, light networks)
through Carafe and compares element types, shapes and values with the expected outputs, within the tests' own tolerance.

A test that fails must be in the list of known failures with its reason; an entry whose test passes is reported, so that
the list shrinks. A test is `not expressible` when no OpenVINO model could have its inputs or outputs.
"""

EXAMPLES = """
examples:
  scripts/onnx-node-suite                            all tests, one line per operation, failures that are not in the list
  scripts/onnx-node-suite --only Resize -v           one operation, every failure with its reason
  scripts/onnx-node-suite --only 'test_top_k*' -v    tests by pattern
  scripts/onnx-node-suite --peers --json all.json    OpenVINO and onnxruntime side by side
  scripts/onnx-node-suite --ir                       Carafe writes each model as IR, OpenVINO runs it, outputs compared

To look at one test: KEEP/<test>/ has model.onnx, case.json, in_*.npy, out_*.npy; KEEP.work/<test>/set0/ has what Carafe
wrote (outputs.json and tensors, or error.txt), and model.xml with --ir.

Needs Python 3.9 or newer with `pip install onnx numpy`; --peers and --ir need `openvino` and `onnxruntime` too.
Exit code: 0 every failure is a known one, 1 some are not or an entry of the list is stale, 2 wrong usage.
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="onnx-node-suite", description=textwrap.dedent(HELP), epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", action="append", default=[],
                        help="operation, kind of tests, or pattern over test names (* and ?); may be repeated")
    parser.add_argument("--peers", action="store_true", help="the same tests on OpenVINO and onnxruntime, in columns beside")
    parser.add_argument("--ir", action="store_true", help="also convert to IR and let OpenVINO run that")
    parser.add_argument("--reasons", metavar="FILE", type=Path, default=ROOT / "scripts" / "onnx-node-suite.reasons",
                        help="the known failures, default: scripts/onnx-node-suite.reasons")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the verdict on every test")
    parser.add_argument("--fixtures", metavar="DIR", type=Path, help="write the small selection for cargo test, of tests that pass")
    parser.add_argument("--keep", metavar="DIR", type=Path, default=ROOT / "target" / "onnx-suite",
                        help="where the tests are written out, default: target/onnx-suite")
    add_engine_arguments(parser, seconds=60)
    parser.add_argument("-v", "--verbose", action="store_true", help="tell every failure, the known ones too")
    return parser.parse_args(argv)


def add_engine_arguments(parser, seconds):
    newest = max((ROOT / "target" / p / "carafe" for p in ("release", "debug")),
                 key=lambda p: p.stat().st_mtime if p.exists() else 0)
    parser.add_argument("--carafe", metavar="PATH", type=Path, default=newest, help="default: the newest under target/")
    parser.add_argument("--device", "-d", metavar="NAME", default="CPU", help="device Carafe runs on, default: %(default)s")
    parser.add_argument("--seconds", metavar="N", type=int, default=seconds, help="patience with one model, default: %(default)s")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="processes side by side, default: %(default)s")


def main(argv=None):
    args = parse(argv)
    if not args.carafe.exists():
        return complain(f"no binary at {args.carafe}; build it with `cargo build --release`, or give --carafe PATH")
    try:
        known = reasons.read(args.reasons, args.device)
    except ValueError as problem:
        return complain(problem)
    keep = args.keep.resolve()
    everything = cases.collect(keep)
    chosen = {n: c for n, c in everything.items() if wanted(c, args.only)}
    if not chosen:
        return complain(f"no test matches {' '.join(args.only)}")
    installed = peers.versions()
    columns = list(installed) if args.peers else []
    if args.ir and "openvino" not in installed or args.peers and not installed:
        return complain("--peers and --ir need `pip install openvino onnxruntime`")

    engine = Engine(args.carafe.resolve(), args.device, args.seconds)
    work = keep.with_name(keep.name + ".work")
    shutil.rmtree(work, ignore_errors=True)
    started = time.monotonic()
    verdicts = {"carafe": ask_carafe(engine, args, keep, work, chosen)}
    spent = time.monotonic() - started
    if args.ir:
        verdicts["ir"] = ask_workers("ir", args, keep, work, {n: c for n, c in chosen.items() if verdicts["carafe"][n][0] == "pass"})
    for peer in columns:
        verdicts[peer] = ask_workers(peer, args, keep, work, chosen)
    banner = f"{engine.version()} on {args.device}, {spent:.1f} s; " + ", ".join(f"{p} {installed[p]}" for p in columns)
    if args.fixtures:
        passing = {n: c for n, c in chosen.items() if verdicts["carafe"][n][0] == "pass"}
        count, size = fixtures.write(keep, passing, args.fixtures)
        print(f"{count} tests, {size} bytes written to {args.fixtures}")
    return report(args, chosen, verdicts, known, banner.rstrip("; "))


def complain(text):
    print(f"onnx-node-suite: {text}", file=sys.stderr)
    return 2


def wanted(case, patterns):
    return not patterns or any(p.lower() in (case["op"].lower(), case["kind"]) or fnmatch.fnmatchcase(case["name"].lower(), p.lower())
                               for p in patterns)


# ---------------------------------------------------------------------------------------------
# The engines
# ---------------------------------------------------------------------------------------------

def ask_carafe(engine, args, keep, work, chosen):
    """{name: (state, why)}."""
    verdicts, asked = {}, {}
    for name, case in chosen.items():
        why = judge.inexpressible(case)
        if why:
            verdicts[name] = ("not expressible", why)
        else:
            asked[name] = judge.items(case, keep / name, work / name, args.ir)
    answers = engine.work([i for each in asked.values() for i in each], args.jobs)
    for name, each in asked.items():
        mine = [answers[i["out"]] for i in each]
        error = next((judge.short(a.error) for a in mine if a.error), None)
        verdicts[name] = ("fail", error) if error else judge.verdict(chosen[name], keep / name, lambda s, m=mine: m[s].outputs())
    return verdicts


def ask_workers(engine, args, keep, work, chosen):
    def ask(name, tell):
        case, folder = chosen[name], keep / name
        tell("run")

        def found(s):
            inputs = {n: values.load(folder, e) for n, e in case["sets"][s]["inputs"].items()}
            model, peer = (work / name / "model.xml", "openvino") if engine == "ir" else (folder / "model.onnx", engine)
            return peers.run(peer, model, inputs)
        return judge.verdict(case, folder, found)

    verdicts = {}
    for name, status, result in run_tasks([(n, "ask", n) for n in chosen], {"ask": ask}, args.jobs):
        verdicts[name] = tuple(result) if status == "done" else ("fail", f"{status}: {result}" if status != "failed" else result)
    return verdicts


# ---------------------------------------------------------------------------------------------
# The report
# ---------------------------------------------------------------------------------------------

def report(args, chosen, verdicts, known, banner):
    others = [c for c in verdicts if c != "carafe"]
    print(f"{'operation':<32}{'tests':>6}{'pass':>6}{'fail':>6}{'not expr.':>10}" + "".join(f"{c:>13}" for c in others))
    groups = {}
    for name, case in chosen.items():
        groups.setdefault(case["op"], []).append(name)
    for op in sorted(groups, key=str.lower):
        print(line_of(op, groups[op], verdicts, others))
    for kind in cases.KINDS:
        names = [n for n, c in chosen.items() if c["kind"] == kind]
        if names and len(names) < len(chosen):
            print(line_of(f"all {kind}", names, verdicts, others))
    print(line_of("total", list(chosen), verdicts, others))
    print(banner)

    mine = verdicts["carafe"]
    failed = [n for n in chosen if mine[n][0] == "fail"]
    for name in failed:
        if name not in known or args.verbose:
            mark = "" if name in known else "  (not in the list)" if known else ""
            print(f"{name} [{chosen[name]['op']}]: {mine[name][1]}{mark}")
    for name in chosen:
        if args.verbose and verdicts.get("ir", {}).get(name, ("pass",))[0] == "fail":
            print(f"{name} [{chosen[name]['op']}]: as IR: {verdicts['ir'][name][1]}")
    fresh = [n for n in failed if n not in known]
    healed = [n for n in chosen if n in known and mine[n][0] != "fail"]
    for name in healed:
        print(f"{name}: passes now, take it off the list")
    gone = [n for n in known if n not in chosen and not args.only]
    for name in gone:
        print(f"{name}: is in the list but no test")
    print(f"{len(failed)} failures, {len(fresh)} of them not in the list; {len(healed)} entries of the list pass")
    if args.json:
        rows = {n: {"op": c["op"], "kind": c["kind"], "opset": c["opset"],
                    **{e: {"state": v[n][0], "why": v[n][1]} for e, v in verdicts.items() if n in v}} for n, c in chosen.items()}
        args.json.write_text(json.dumps({"banner": banner, "tests": rows}, indent=1) + "\n")
    return 1 if fresh or healed or gone else 0


def line_of(title, names, verdicts, others):
    states = [verdicts["carafe"][n][0] for n in names]
    line = f"{title:<32}{len(names):>6}" + "".join(f"{states.count(s):>{w}}" for s, w in (("pass", 6), ("fail", 6), ("not expressible", 10)))
    for column in others:
        line += f"{sum(verdicts[column].get(n, ('none',))[0] == 'pass' for n in names):>13}"
    return line
