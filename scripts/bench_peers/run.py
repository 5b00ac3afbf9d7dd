"""Runs the engines of one model in turns and gathers their figures.

Every engine is a process that holds the model. In each round every engine runs for a moment while the others wait, so a
ratio compares runs made seconds apart on the same machine. What other programs use of the processors meanwhile is watched:
a turn they disturbed is run again, a few times at most, and the quietest turn counts.
"""

import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import place

DISTURBED = 0.1  # of a processor
PAUSE = 0.05  # seconds between turns, in which threads of the last one stop spinning
ONE_THREAD = {"tract"}
OURS = ("carafe", "carafe-onnx")  # the latter runs the ONNX twin of a model
JUDGES = ("tensorflow", "tflite", "onnxruntime", "openvino")  # the first that ran says what is right
SMALLEST = 1e-3  # no difference is measured against less
TICK = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """An engine could not do what it was asked."""


class Worker:
    def __init__(self, plan, engine, model, inputs, threads, streams):
        command = [str(part) for part in (*plan.command(engine), model, inputs, threads, streams)]
        command += plan.settings(engine)
        environment = dict(os.environ, PYTHONPATH=str(place.ROOT / "scripts"))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env=environment, preexec_fn=first_in_line)
        self.engine, self.threads, self.streams = engine, threads, streams
        try:
            self.start = self.answer()
        except Failed:
            self.close()
            raise

    def answer(self):
        line = self.process.stdout.readline()
        told = json.loads(line) if line else {"error": f"the process ended with status {self.process.wait()}"}
        if "error" in told:
            raise Failed(told["error"])
        return told

    def ask(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says how it ended
        return self.answer()

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def spent(self):
        """Processor seconds it has used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK


def first_in_line():
    """Before everyone else, where that is allowed. Linux may weigh sessions before processes, so it gets one of its own."""
    with contextlib.suppress(OSError):
        os.setsid()
        os.nice(-20)
        Path("/proc/self/autogroup").write_text("-20", encoding="ascii")


def machine_spent():
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, soft, stolen = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + soft + stolen) / TICK


def undisturbed(worker, tries, measure):
    """(share of a processor others used, figure) of the quietest try."""
    best = None
    for _ in range(tries):
        all_before, own_before, start = machine_spent(), worker.spent(), time.perf_counter()
        figure = measure()
        lasted = time.perf_counter() - start
        others = machine_spent() - all_before - (worker.spent() - own_before)
        share = max(0.0, others / lasted - 2 / TICK / lasted)  # the counters are coarse
        if best is None or share < best[0]:
            best = (share, figure)
        if share < DISTURBED:
            break
    return best


@contextlib.contextmanager
def alone():
    """Other runs of this tool wait."""
    file = place.lock()
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


class Plan:
    """What is to be measured, and how long."""

    def __init__(self, engines, threads, rounds, seconds, loads, tries, device, worker, precision="f32"):
        self.engines, self.threads, self.rounds, self.seconds = engines, threads, rounds, seconds
        self.loads, self.tries, self.device, self.worker, self.precision = loads, tries, device, worker, precision

    def command(self, engine):
        known = self.engines[engine]
        if engine in OURS:
            return [self.worker]
        return known or [sys.executable, "-m", "bench_peers.engines", engine]

    def settings(self, engine):
        """Arguments behind those that every engine takes; an engine of the user's has none."""
        if engine in OURS:
            return [self.device, self.precision]
        return [] if self.engines[engine] else [self.precision]

    def throughput(self, engine, cores):
        """Settings (threads, streams) to try; 0 streams: the engine chooses. One inference at a time may be the best way of a peer."""
        if engine in OURS:
            return [(1, 0)]
        one = [] if engine in ONE_THREAD else [(cores, 1)]
        return list(dict.fromkeys([(1, cores), *([(1, 0)] if engine == "openvino" else []), *one]))


def measure(plan, files, quantized=False):
    """{engine: figures} for one model; an engine that fails has `problem` instead. `files` has (model, inputs) of every engine
    that takes part."""
    found = {engine: {"latency": {}} for engine in files}
    outputs = {}

    def fail(engine, problem):
        found[engine] = {"problem": str(problem)}

    def able():
        return [e for e in files if "problem" not in found[e]]

    for threads in plan.threads:
        most = threads == max(plan.threads)
        workers = {}
        for _ in range(plan.loads if most else 1):
            for engine in able():
                if engine in workers:
                    workers.pop(engine).close()
                if engine in ONE_THREAD and threads > 1:
                    continue
                try:
                    worker = workers[engine] = Worker(plan, engine, *files[engine], threads, 1)
                    if most or engine in ONE_THREAD:
                        begun(found[engine], worker)
                except Failed as problem:
                    fail(engine, problem)
        for engine in list(workers):
            if engine not in outputs:
                with guarded(engine, workers, fail):
                    outputs[engine] = dumped(workers[engine])
        for engine, turns in rounds(plan, workers, fail, latency).items():
            found[engine]["latency"][str(threads)] = {
                "ms": statistics.median(f["median_ns"] for _, f in turns) / 1e6, "least_ms": min(f["min_ns"] for _, f in turns) / 1e6,
                "others": max(share for share, _ in turns), "rounds": [f["median_ns"] / 1e6 for _, f in turns]}
        for worker in workers.values():
            worker.close()
    throughput(plan, files, found, able)
    agreement(found, outputs, quantized)
    return found


def begun(found, worker):
    """Start and memory: the least of several starts."""
    told = {"load_s": worker.start["load_s"], "first_s": worker.start["first_s"]}
    worker.ask("time", 0, 2)
    memory = worker.ask("rss")
    told["peak_mb"] = memory["peak_kb"] / 1024
    told["net_mb"] = (memory["peak_kb"] - worker.start["base_kb"]) / 1024
    for key, value in told.items():
        found[key] = min(value, found.get(key, value))


@contextlib.contextmanager
def guarded(engine, workers, fail):
    try:
        yield
    except Failed as problem:
        fail(engine, problem)
        workers.pop(engine).close()


def rounds(plan, workers, fail, measure_one):
    """{engine: [(share others used, figure)]}"""
    found = {}
    for turn in range(plan.rounds + 1):
        # Nobody always comes behind the same one, whose threads may spin for a while yet.
        order = list(workers)
        first = turn % max(len(order), 1)
        for engine in order[first:] + order[:first]:
            with guarded(engine, workers, fail):
                worker = workers[engine]
                time.sleep(PAUSE)
                if turn == 0:
                    measure_one(worker, min(plan.seconds, 0.2))
                else:
                    found.setdefault(engine, []).append(undisturbed(worker, plan.tries, lambda: measure_one(worker, plan.seconds)))
    return {engine: turns for engine, turns in found.items() if engine in workers}


def latency(worker, seconds):
    return worker.ask("time", seconds, 3)


def pace(worker, seconds):
    told = worker.ask("rate", max(seconds, 0.5))
    return told["count"] / told["seconds"]


def throughput(plan, files, found, able):
    """Every way of every engine in the same turns: a machine that is fast now and slow then favours nobody."""
    cores, workers = place.cores(), {}
    for engine in able():
        for setting in plan.throughput(engine, cores):
            try:
                workers[engine, setting] = Worker(plan, engine, *files[engine], *setting)
            except Failed as problem:
                found[engine]["problem"] = str(problem)
    for (engine, setting), turns in rounds(plan, workers, lambda way, p: found[way[0]].update(problem=str(p)), pace).items():
        name = "x".join(map(str, setting))
        found[engine].setdefault("throughput", {})[name] = statistics.median(rate for _, rate in turns)
    for worker in workers.values():
        worker.close()
    for figures in found.values():
        if figures.get("throughput"):
            figures["per_second"] = max(figures["throughput"].values())


# ---------------------------------------------------------------------------------------------
# Do they compute the same?
# ---------------------------------------------------------------------------------------------

def dumped(worker):
    with tempfile.TemporaryDirectory() as folder:
        count = worker.ask("dump", folder)["outputs"]
        return [np.load(Path(folder) / f"out_{i}.npy") for i in range(count)]


def agreement(found, outputs, quantized=False):
    """Sets `error`, the largest difference from the reference measured against its largest value; of a quantized model the length of
    the difference against that of the reference, for single values may be many steps apart."""
    reference = next((e for e in JUDGES if e in outputs), None)
    for engine, made in outputs.items():
        if reference and engine != reference and "problem" not in found[engine]:
            found[engine]["error"] = difference(outputs[reference], made, quantized)


def difference(expected, made, quantized=False):
    """A number, or what is wrong in words."""
    if [e.shape for e in expected] != [m.shape for m in made]:
        return f"outputs {[m.shape for m in made]}, expected {[e.shape for e in expected]}"
    worst = 0.0
    for want, have in zip(expected, made):
        if want.size:
            # Quantized values may be a step apart.
            step = 1 if want.dtype.kind in "iu" and want.dtype.itemsize < 4 else 0
            want, have = want.astype(np.float64), have.astype(np.float64)
            if quantized:
                worst = max(worst, float(np.linalg.norm(want - have) / max(np.linalg.norm(want), SMALLEST)))
                continue
            away = np.where((want == have) | np.isnan(want) & np.isnan(have), 0, np.abs(want - have)).max()
            away = max(away - step, 0)
            worst = max(worst, float(away / max(np.abs(np.where(np.isfinite(want), want, 0)).max(), SMALLEST)))
    return worst
