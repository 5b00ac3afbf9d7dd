"""Other engines, each in a Python of its own: a process that takes one net a line and answers one line."""

import json
import os
import selectors
import subprocess
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent


class Peer:
    """An engine: `openvino` (mo converts, OpenVINO runs; it needs `protobuf<4`) or `opencv`."""

    def __init__(self, engine, python, seconds=300):
        self.engine, self.python, self.seconds, self.process = engine, python, seconds, None

    def run(self, prototxt, caffemodel, inputs, outputs, work):
        """{output: array}, or a string that says why there is none. `outputs` is what `outputs_of` gives."""
        work.mkdir(parents=True, exist_ok=True)
        given, found = work / f"{self.engine}-in.npz", work / f"{self.engine}-out.npz"
        np.savez(given, **inputs)
        found.unlink(missing_ok=True)
        task = {"prototxt": str(prototxt), "caffemodel": str(caffemodel) if caffemodel else "", "inputs": str(given),
                "outputs": outputs, "out": str(found)}
        answer = self.ask(json.dumps(task))
        if answer:
            return answer
        with np.load(found) as file:
            return {name: file[name] for name in file.files}

    def ask(self, line):
        if self.process is None:
            path = os.pathsep.join(filter(None, [str(FOLDER.parent), os.environ.get("PYTHONPATH")]))
            self.process = subprocess.Popen([self.python, "-m", f"caffe_suite.peer_{self.engine}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": path})
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            with selectors.DefaultSelector() as ready:
                ready.register(self.process.stdout, selectors.EVENT_READ)
                if not ready.select(self.seconds):
                    self.close()
                    return f"no answer within {self.seconds} s"
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.process.wait()
            self.close()
            return f"died with code {code}"
        return json.loads(answer)

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def outputs_of(net):
    """[(blob, layer, index, type)] of the tops that nothing consumes, in the order of the file."""
    made = {}
    for at in net.get("layer", []) or net.get("layers", []):
        kind = at["type"][-1]
        if any(rule.get("phase", [""])[-1] == "TRAIN" for rule in at.get("include", [])):
            continue
        for blob in at.get("bottom", []):
            made.pop(blob, None)
        if kind != "Input":
            for i, blob in enumerate(at.get("top", [])):
                made.pop(blob, None)
                made[blob] = (blob, at["name"][-1], i, kind)
    return list(made.values())


def serve(run):
    """The loop of an engine's process: `run(task, inputs)` gives {output: array}."""
    import sys
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            with np.load(task["inputs"]) as file:
                inputs = {name: file[name] for name in file.files}
            np.savez(task["out"], **run(task, inputs))
            answer = ""
        except BaseException as problem:  # mo leaves by SystemExit
            answer = f"{type(problem).__name__}: {problem}".strip()[:2000]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
