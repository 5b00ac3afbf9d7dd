"""Forked worker processes for engines that may end the process they run in: a worker that dies costs one task."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import time

TASK_SECONDS = 120


def _serve(pipe, handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # OpenVINO prints warnings on standard output; keep the report clean.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            kind, payload = pipe.recv()
        except EOFError:
            return
        try:
            result = handlers[kind](payload, lambda stage: pipe.send(("stage", stage)))
            pipe.send(("done", result))
        except Exception as problem:
            pipe.send(("failed", first_words(problem)))


class _Worker:
    def __init__(self, context, handlers):
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, handlers), daemon=True)
        self.process.start()
        other.close()
        self.task = None
        self.stage = ""
        self.since = 0.0

    def give(self, task):
        self.task, self.stage, self.since = task, "start", time.monotonic()
        self.pipe.send((task[1], task[2]))

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        if not self.pipe.closed:
            self.pipe.close()


def run_tasks(tasks, handlers, jobs, progress=None, fresh=False):
    """Runs [(key, kind, payload)] in forked workers; yields (key, status, result).

    status: `done` with the handler's result; `failed` with a message; `crashed` or `timeout` with
    the stage that was running. With `fresh`, every task gets a process of its own: a kernel that
    writes out of bounds may spoil the tasks after it without dying itself.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    workers = [_Worker(context, handlers) for _ in range(min(jobs, len(tasks)) or 0)]
    finished = 0
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while any(w.task for w in workers):
            busy = [w for w in workers if w.task]
            ready = multiprocessing.connection.wait([w.pipe for w in busy], timeout=1.0)
            for i, worker in enumerate(workers):
                if not worker.task:
                    continue
                outcome = None
                if worker.pipe in ready:
                    try:
                        kind, value = worker.pipe.recv()
                        if kind == "stage":
                            worker.stage = value
                        else:
                            outcome = (kind, value)
                    except (EOFError, ConnectionResetError):
                        worker.process.join()
                        outcome = ("crashed", f"{worker.stage}, {exit_words(worker.process.exitcode)}")
                elif time.monotonic() - worker.since > TASK_SECONDS:
                    outcome = ("timeout", worker.stage)
                if outcome is None:
                    continue
                key = worker.task[0]
                worker.task = None
                if fresh or outcome[0] in ("crashed", "timeout"):
                    worker.stop()
                    if waiting:
                        workers[i] = worker = _Worker(context, handlers)
                if waiting:
                    worker.give(waiting.pop())
                finished += 1
                if progress:
                    progress(finished, len(tasks))
                yield key, outcome[0], outcome[1]
    finally:
        for worker in workers:
            worker.stop()


def exit_words(code):
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def first_words(problem):
    """An exception of OpenVINO as one line without source positions."""
    lines = [x.strip() for x in str(problem).splitlines() if x.strip()]
    lines = [x for x in lines if not x.startswith("Exception from") and x != "Details:"]
    return " ".join(lines)[:300] or type(problem).__name__
