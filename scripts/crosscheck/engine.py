"""Drives the `carafe` binary.

The fast way is one process for many models::

    carafe run --batch LIST.json -d DEVICE

LIST.json is a list of {"model": xml, "inputs": {name: npy}, "out": folder, "repeat": n, "convert": xml}. For every
item Carafe first writes the model to `convert`, where the item has it, as IR with uncompressed weights, then runs it and
writes `out/outputs.json`; when either fails it writes `out/error.txt`. The items are worked off in order, so that after a
crash the first item without an answer is the one to blame; the rest goes to a new process.

With `batch=False` the plain commands `carafe run` and `carafe convert` are used, one process per model.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np


def on(device):
    """The words that run on a device, CPU in f32: its own choice may be another type, and numbers are compared strictly."""
    return ["-d", device, *(["--property", "INFERENCE_PRECISION_HINT=f32"] if device == "CPU" else [])]


class Engine:
    """The binary, the device, and how patient to be with one model."""

    def __init__(self, binary, device="CPU", seconds=60, batch=True):
        self.binary, self.device, self.seconds, self.batch = Path(binary), device, seconds, batch

    def version(self):
        done = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=False)
        return done.stdout.strip() or "unknown"

    def work(self, items, jobs):
        """Runs and converts all items; returns {out folder: Answer}."""
        for item in items:
            shutil.rmtree(item["out"], ignore_errors=True)
            Path(item["out"]).mkdir(parents=True)
            if "convert" in item:
                Path(item["convert"]).unlink(missing_ok=True)
        shares = [items[i::jobs] for i in range(jobs)]
        process = self._batches if self.batch else self._singles
        with ThreadPoolExecutor(jobs) as pool:
            lost = {}
            for part in pool.map(process, [s for s in shares if s]):
                lost.update(part)
        answers = {i["out"]: Answer(i, lost.get(i["out"])) for i in items}
        # A model that could not be written back may still run: ask again without the conversion.
        again = [i for i in items if "convert" in i and not Path(i["convert"]).exists() and i["out"] not in lost
                 and answers[i["out"]].error]
        if again and self.batch:
            runs = [{k: v for k, v in i.items() if k != "convert"} for i in again]
            for item in runs:
                (Path(item["out"]) / "error.txt").unlink()
            lost = self._batches(runs)
            for item in again:
                first = answers[item["out"]].error
                answers[item["out"]] = Answer(item, lost.get(item["out"]))
                answers[item["out"]].convert_error = first
        return answers

    def _batches(self, items):
        """Works off a list in as many processes as crashes make necessary; returns {out: why it has no answer}."""
        lost = {}
        left = list(items)
        while left:
            problem = self._one_batch(left)
            left = [i for i in left if not answered(i)]
            if left:
                lost[left[0]["out"]] = problem or "no answer, though the process ended well"
                left = left[1:]
        return lost

    def _one_batch(self, items):
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "list.json"
            file.write_text(json.dumps(items))
            log = Path(scratch) / "log.txt"
            with log.open("w") as sink:
                process = subprocess.Popen([self.binary, "run", "--batch", file, *on(self.device)], stdout=sink,
                                           stderr=subprocess.STDOUT, start_new_session=True)
                done, since = 0, time.monotonic()
                while process.poll() is None:
                    time.sleep(0.05)
                    now = done
                    while now < len(items) and answered(items[now]):
                        now += 1
                    if now != done:
                        done, since = now, time.monotonic()
                    elif time.monotonic() - since > self.seconds:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                        return f"no answer within {self.seconds} s"
            if process.returncode == 0:
                return None
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            return f"{exit_words(process.returncode)}: {' '.join(tail)}"[:300]

    def _singles(self, items):
        lost = {}
        for item in items:
            out = Path(item["out"])
            convert = [self.binary, "convert", item["model"], "-o", item.get("convert"), "--compress_to_fp16=False"]
            run = [self.binary, "run", item["model"], *on(self.device), "-o", out, "--repeat", str(item["repeat"])]
            for name, file in item["inputs"].items():
                run += ["-i", f"{name}={file}"]
            commands = [(convert, "convert_error.txt")] if "convert" in item else []
            for command, note in [*commands, (run, "error.txt")]:
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=self.seconds, check=False)
                    if done.returncode:
                        (out / note).write_text(done.stderr or exit_words(done.returncode))
                except subprocess.TimeoutExpired:
                    lost[item["out"]] = f"no answer within {self.seconds} s"
        return lost


class Answer:
    """What Carafe said to one item: outputs or error, and the converted model or why there is none."""

    def __init__(self, item, lost):
        self.out = Path(item["out"])
        self.converted = Path(item["convert"]) if "convert" in item and Path(item["convert"]).exists() else None
        self.convert_error = read_text(self.out / "convert_error.txt")
        self.error = lost or read_text(self.out / "error.txt")
        if not self.error and not (self.out / "outputs.json").exists():
            self.error = "no outputs.json"
        if self.converted is None and self.convert_error is None:
            self.convert_error = self.error or "nothing written"

    def outputs(self):
        """[(name, element type, array)] in model order; the elements of a sequence are `name/0`, `name/1`, ..."""
        listing = json.loads((self.out / "outputs.json").read_text())["outputs"]
        found = []
        for o in listing:
            data = np.load(self.out / o["file"], allow_pickle=False)
            if "elements" in o:
                found += [(f"{o['name']}/{i}", e["element_type"], data[f"arr_{i}"]) for i, e in enumerate(o["elements"] or [])]
            else:
                found.append((o["name"], o["element_type"], data))
        return found


def answered(item):
    out = Path(item["out"])
    return (out / "outputs.json").exists() or (out / "error.txt").exists()


def read_text(path):
    return " ".join(path.read_text(errors="replace").split())[:400] if path.exists() else None


def exit_words(code):
    return f"died with {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
