"""Arguments, the order of the stages, and the report."""

import argparse
import fnmatch
import hashlib
import inspect
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from . import case as case_module
from . import families, fixtures, oracle, store
from .compare import difference
from .engine import Engine
from .opsets import OPERATIONS
from .workers import run_tasks

HELP = """
Checks Carafe against OpenVINO, operation by operation, in both directions.

Every case is one small model with seeded inputs: a single operation in one element type and one setting of its
attributes, or a few operations that belong together (If, Loop, state, packed weights, old files ...).

  expected     OpenVINO's CPU device runs the model (precision f32, in a process of its own, so that a crash costs one
               case). As a second opinion OpenVINO folds the same model with constants for inputs, which uses its
               reference kernels.
  direction A  Carafe reads the file that OpenVINO wrote and runs it; the outputs must agree with the expected ones.
  direction B  Carafe writes the model as IR; OpenVINO reads and runs that file; again the outputs must agree.

A case is `explained` when Carafe disagrees with the CPU device and agrees with the reference: the two are known to
differ in places, and Carafe follows the reference. Everything else that does not agree is a failure.
"""

EXAMPLES = """
examples:
  scripts/crosscheck-openvino                              all operations, summary at the end
  scripts/crosscheck-openvino --keep /tmp/xc               keep models and expected outputs; the next run is quick
  scripts/crosscheck-openvino --only TopK                  one operation
  scripts/crosscheck-openvino --only 'Pad-12-*' -v         cases by pattern, with the reason of every difference
  scripts/crosscheck-openvino --list                       operations, versions, number of cases, what is not covered
  scripts/crosscheck-openvino --keep /tmp/xc --prepare     only OpenVINO's side, needs no carafe binary
  scripts/crosscheck-openvino --networks nets              real networks made by scripts/fixtures/real-networks

To look at one case, keep the directory: DIR/<case>/ has model.xml, model.bin, in_*.npy, out_*.npy (CPU), ref_*.npy
(reference), case.json, carafe.xml (the model as Carafe wrote it), and carafe/ with Carafe's outputs or error.txt.

Needs Python 3.9 or newer with `pip install openvino numpy`.
Exit code: 0 all agree or are explained, 1 an unexplained difference, 2 wrong usage.
"""


def parse(argv):
    parser = argparse.ArgumentParser(prog="crosscheck-openvino", description=textwrap.dedent(HELP), epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="OP", action="append", default=[],
                        help="operation name, family name, or pattern over case names (* and ?); may be repeated")
    parser.add_argument("--list", action="store_true", help="list operations and cases (with -v every case), run nothing")
    parser.add_argument("--prepare", action="store_true", help="compute OpenVINO's side only")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep models and expected outputs here and reuse them")
    parser.add_argument("--refresh", action="store_true", help="compute expected outputs again, whatever is kept")
    parser.add_argument("--carafe", metavar="PATH", type=Path, default=Path("target/release/carafe"), help="default: %(default)s")
    parser.add_argument("--device", "-d", metavar="NAME", default="CPU", help="device Carafe runs on, default: %(default)s")
    parser.add_argument("--single", action="store_true", help="one carafe process per model instead of the batch form")
    parser.add_argument("--seconds", metavar="N", type=int, default=60, help="patience with one model, default: %(default)s")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="processes side by side, default: %(default)s")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result of every case")
    parser.add_argument("--fixtures", metavar="DIR", type=Path, help="write the selection for cargo test and stop")
    parser.add_argument("--networks", metavar="DIR", type=Path, help="check the networks of this directory instead of the operations")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell about every case that does not simply agree")
    args = parser.parse_args(argv)
    if args.jobs < 1:
        parser.error("--jobs must be at least 1")
    return args


def main(argv=None):
    args = parse(argv)
    if args.networks:
        names = sorted(p.parent.name for p in args.networks.glob("*/case.json"))
        if not names:
            return complain(f"no networks in {args.networks}: make them with scripts/fixtures/real-networks {args.networks}")
        records = {n: network_record(args.networks / n, n) for n in names}
        with tempfile.TemporaryDirectory(prefix="crosscheck-") as scratch:
            return check(args, args.networks, args.keep or Path(scratch), records)
    cases = families.all_cases()
    chosen = {n: c for n, c in cases.items() if wanted(c, args.only)}
    if not chosen:
        return complain(f"no case matches {' '.join(args.only)}; --list shows the names")
    if args.list:
        list_cases(chosen, args.verbose, everything=not args.only)
        return 0
    with tempfile.TemporaryDirectory(prefix="crosscheck-") as scratch:
        keep = args.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        records = expected(args, keep, chosen)
        if args.fixtures:
            count, size = fixtures.write(keep, records, args.fixtures)
            print(f"{count} fixtures, {size / 1e6:.2f} MB, in {args.fixtures}")
            return 0
        if args.prepare:
            return prepared(records)
        return check(args, keep, keep, records)


def wanted(case, patterns):
    if not patterns:
        return True
    return any(p.lower() in (case.op.lower(), case.family.lower()) or fnmatch.fnmatchcase(case.name.lower(), p.lower())
               for p in patterns)


def complain(text):
    print(f"crosscheck-openvino: {text}", file=sys.stderr)
    return 2


# ---------------------------------------------------------------------------------------------
# Expected outputs
# ---------------------------------------------------------------------------------------------

def expected(args, keep, cases):
    """Reads or computes the records of all cases; {name: record}."""
    keys = cache_keys(cases)
    records, missing = {}, []
    for name in cases:
        record = None if args.refresh else cached(keep / name, keys[name])
        if record is None:
            missing.append(name)
        else:
            records[name] = record

    def compute(name, tell):
        return oracle.expect(cases[name], keep / name, keys[name], tell)

    def reference_only(payload, tell):
        name, problem = payload
        return oracle.expect(cases[name], keep / name, keys[name], tell, cpu_problem=problem)

    handlers = {"compute": compute, "reference": reference_only}
    tasks = [(n, "compute", n) for n in missing]
    again = []
    for name, status, result in run_tasks(tasks, handlers, args.jobs, progress("expected"), fresh=True):
        if status == "done":
            records[name] = result
        elif status in ("crashed", "timeout") and result.startswith("cpu"):
            again.append((name, "reference", (name, f"{status}: {result}")))
        else:
            # The CPU part may be complete when only the reference died.
            records[name] = cached(keep / name, keys[name]) or failed_record(cases[name], f"{status}: {result}")
    for name, status, result in run_tasks(again, handlers, args.jobs, fresh=True):
        records[name] = result if status == "done" else failed_record(cases[name], f"{status}: {result}")
    return {n: records[n] for n in cases}


def cache_keys(cases):
    common = oracle.version() + inspect.getsource(case_module)
    modules = {f.__name__.rsplit(".", 1)[-1]: hashlib.sha256((common + inspect.getsource(f)).encode()).hexdigest()
               for f in families.FAMILIES}
    return {n: modules[c.family] for n, c in cases.items()}


def cached(folder, key):
    try:
        record = store.read_case(folder)
    except (OSError, ValueError):
        return None
    return record if record.get("key") == key else None


def failed_record(case, problem):
    return {"op": case.op, "version": case.version, "name": case.name, "family": case.family, "cpu": problem, "outputs": [],
            "inputs": {}, "known": case.known, "build_failed": True}


def network_record(folder, name):
    record = store.read_case(folder)
    return {"name": name, "family": "networks", "cpu": "ok", "known": "", **record}


def prepared(records):
    """Reports OpenVINO's side alone."""
    silent = [r for r in records.values() if not r["outputs"]]
    for record in silent:
        print(f"{record['name']}: {record['cpu'][:160]}" + ("  (reference only)" if record.get("reference") else ""))
    leaves = [r for r in records.values() if r.get("cpu_leaves_reference")]
    print(f"\nCPU leaves the reference in {len(leaves)} cases:")
    for record in leaves:
        print(f"{record['name']}: {record['cpu_leaves_reference']}" + (f"  [{record['known']}]" if record["known"] else ""))
    second = sum(1 for r in records.values() if r.get("reference"))
    lost = sum(1 for r in silent if not r.get("reference"))
    print(f"\n{len(records)} cases of {len({r['op'] for r in records.values()})} operations: {len(records) - len(silent)} answered by the "
          f"CPU device, {second} with a second opinion, {lost} without any answer")
    return 1 if any(r.get("build_failed") for r in records.values()) else 0


# ---------------------------------------------------------------------------------------------
# Comparison
# ---------------------------------------------------------------------------------------------

def check(args, keep, work, records):
    """Compares all records, whose files lie under `keep`; Carafe's files go under `work`."""
    if not args.carafe.exists():
        return complain(f"no binary at {args.carafe}; build it with `cargo build --release`, or give --carafe PATH")
    engine = Engine(args.carafe, args.device, args.seconds, batch=not args.single)
    usable = {n: r for n, r in records.items() if r["outputs"] or r.get("reference")}
    items = {}
    for name, record in usable.items():
        folder, mine = (keep / name).resolve(), (work / name).resolve()
        items[name] = {"model": str(folder / "model.xml"), "inputs": {k: str(folder / f) for k, f in record["inputs"].items()},
                       "out": str(mine / "carafe"), "repeat": record["repeat"], "convert": str(mine / "carafe.xml")}
    started = time.monotonic()
    answers = engine.work(list(items.values()), args.jobs)
    spent = time.monotonic() - started
    results = {n: {"op": r["op"], "version": r["version"], "why": r["cpu"],
                   **dict.fromkeys("ab", "failed" if r.get("build_failed") else "unavailable")} for n, r in records.items()}
    for name, record in usable.items():
        state, why = judge_a(record, keep / name, answers[items[name]["out"]])
        results[name].update(a=state, why=why or "")
    for name, state, why in judge_b(args, keep, usable, items, answers):
        results[name]["b"] = state
        if why:
            results[name]["why_b"] = why
    return report(args, records, results, f"{engine.version()} on {args.device}, {spent:.1f} s; OpenVINO {oracle.version()}")


def judge_a(record, folder, answer):
    if answer.error:
        return "failed", answer.error
    return judge(record, folder, answer.outputs())


def judge(record, folder, found):
    """agree, explained or failed, with the reason."""
    cpu = store.load_outputs(folder, record["outputs"])
    why = difference(record, cpu, found) if cpu else None
    if cpu and why is None:
        return "agree", None
    if record.get("reference"):
        against = difference(record, store.load_outputs(folder, record["reference"]), found)
        if against is None:
            return ("explained", f"CPU: {why}") if cpu else ("agree", None)
        why = f"{why or ''}{'; ' if why else ''}reference: {against}"
    return "failed", why


def judge_b(args, keep, records, items, answers):
    tasks = []
    for name in records:
        answer = answers[items[name]["out"]]
        if answer.converted is None:
            yield name, "failed", f"convert: {answer.convert_error}"
        else:
            tasks.append((name, "rerun", name))

    def rerun(name, tell):
        tell("rerun")
        found = oracle.rerun(records[name], keep / name, items[name]["convert"])
        if found is None:
            return ("agree" if records[name]["readable"] else "unavailable"), None
        return judge(records[name], keep / name, found)

    handlers = {"rerun": rerun}
    doubtful = []
    for name, status, result in run_tasks(tasks, handlers, args.jobs, progress("direction B")):
        if status == "done" and result[0] != "failed":
            yield name, *result
        else:
            doubtful.append((name, "rerun", name))
    # A neighbour in the same process may have spoilt the memory: only a fresh process counts.
    for name, status, result in run_tasks(doubtful, handlers, args.jobs, fresh=True):
        if status == "done":
            yield name, *result
        else:
            yield name, "failed", f"OpenVINO {status}: {result}"


# ---------------------------------------------------------------------------------------------
# Reports
# ---------------------------------------------------------------------------------------------

def report(args, records, results, banner):
    by_op = {}
    for name, result in results.items():
        by_op.setdefault(result["op"], []).append((name, result))
    print(f"{'operation':<50} {'versions':<12} {'cases':>5} {'A':>5} {'B':>5} {'expl':>5} {'fail':>5} {'none':>5}")
    for op in sorted(by_op, key=str.lower):
        rows = [r for _, r in by_op[op]]
        versions = ",".join(str(v) for v in sorted({r["version"] for r in rows}))
        print(line_of(op, versions, rows))
    rows = list(results.values())
    print(line_of("total", "", rows))
    bad = {n: r for n, r in results.items() if "failed" in (r["a"], r["b"])}
    for name, result in results.items():
        shown = name in bad or (args.verbose and "explained" in (result["a"], result["b"])) or (args.verbose and result["a"] == "unavailable")
        if not shown:
            continue
        known = f"  [{records[name]['known']}]" if records[name].get("known") else ""
        if result["a"] != "agree":
            print(f"{name}: A {result['a']}: {result['why']}{known}")
        if result["b"] != "agree" and (result["b"] != result["a"] or result.get("why_b") != result["why"]):
            print(f"{name}: B {result['b']}: {result.get('why_b', '')}{known}")
    print(f"\n{banner}\n{len(bad)} of {len(results)} cases failed")
    if args.json:
        store.write_json(args.json, {"banner": banner, "failed": len(bad), "cases": results})
    return 1 if bad else 0


def line_of(op, versions, rows):
    agree_a, agree_b = (sum(r[k] == "agree" for r in rows) for k in "ab")
    explained = sum("explained" in (r["a"], r["b"]) and "failed" not in (r["a"], r["b"]) for r in rows)
    failed = sum("failed" in (r["a"], r["b"]) for r in rows)
    none = sum(r["a"] == "unavailable" for r in rows)
    return f"{op:<50} {versions:<12} {len(rows):>5} {agree_a:>5} {agree_b:>5} {explained:>5} {failed:>5} {none:>5}"


def list_cases(cases, verbose, everything):
    by_op = {}
    for name, case in cases.items():
        by_op.setdefault(case.op, []).append(case)
    for op in sorted(by_op, key=str.lower):
        versions = ",".join(str(v) for v in sorted({c.version for c in by_op[op]}))
        print(f"{op:<50} {versions:<12} {len(by_op[op]):>4}")
        if verbose:
            for case in by_op[op]:
                print(f"    {case.name}")
    print(f"\n{len(cases)} cases of {len(by_op)} operations")
    if not everything:
        return
    missing = [f"{op} (opset{v})" for op, versions in OPERATIONS.items() for v in versions
               if v not in {home(op, c.version) for c in by_op.get(op, [])}]
    print(f"{sum(map(len, OPERATIONS.values())) - len(missing)} of {sum(map(len, OPERATIONS.values()))} class versions of "
          f"opset1 to opset16 are covered; not covered: {', '.join(missing) or 'none'}")


def home(op, opset):
    """The opset in which the class that `opset` shows under this name was born."""
    return max((v for v in OPERATIONS.get(op, []) if v <= opset), default=None)


def progress(what):
    """A counter on standard error, only when a person looks at it."""
    if not sys.stderr.isatty():
        return None

    def show(done, total):
        print(f"\r{what}: {done} of {total} ", end="\n" if done == total else "", file=sys.stderr, flush=True)
    return show
