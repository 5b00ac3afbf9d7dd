"""Children of a fork go on with the models that their parent had."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# A network whose jobs are shared by all threads, and its answer.
START = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Of threads beside a fork, which this is about.
import numpy as np
import carafe as ov
from carafe import opset13 as ops

def network():
    data = ops.parameter([64, 256], np.float32)
    weights = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32)
    return ov.Model([ops.softmax(ops.matmul(data, ops.constant(weights), False, False), 1)], [data])

core = ov.Core()
compiled = core.compile_model(network(), "CPU", {"INFERENCE_NUM_THREADS": 4})
image = np.random.default_rng(2).standard_normal((64, 256)).astype(np.float32)
wanted = compiled(image)[0]

def same(found):
    return bool(np.array_equal(found, wanted))

def child(work):
    '''Runs work in a child; true when it ended well.'''
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", START + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_child_goes_on_with_a_compiled_model():
    assert run("print(child(lambda: all(same(compiled(image)[0]) for _ in range(20))), same(compiled(image)[0]))") == "True True\n"


def test_a_child_goes_on_with_requests_and_queues():
    program = """
request = compiled.create_infer_request()
request.infer(image)
queue = ov.AsyncInferQueue(compiled, 3)
ended = []
queue.set_callback(lambda request, number: ended.append(same(request.get_output_tensor().data)))
for _ in range(6):
    queue.start_async(image)
queue.wait_all()

def work():
    ended.clear()
    for _ in range(9):
        queue.start_async(image)
    queue.wait_all()
    request.start_async(image)
    request.wait()
    return ended == [True] * 9 and same(request.results[request.model_outputs[0]])

print(child(work), child(work), ended == [True] * 6)
"""
    assert run(program) == "True True True\n"


def test_a_child_of_a_child_goes_on_too():
    assert run("print(child(lambda: same(compiled(image)[0]) and child(lambda: same(compiled(image)[0]))))") == "True\n"


def test_a_child_compiles_with_the_core_of_its_parent():
    assert run('print(child(lambda: same(core.compile_model(network(), "CPU")(image)[0])))') == "True\n"


def test_processes_of_multiprocessing_share_a_model_that_was_loaded_before():
    program = """
import multiprocessing

def answer(number):
    return same(compiled(image)[0]), os.getpid()

with multiprocessing.get_context("fork").Pool(3) as pool:
    found = pool.map(answer, range(30), chunksize=1)
print(all(ok for ok, _ in found), os.getpid() not in {pid for _, pid in found})
"""
    assert run(program) == "True True\n"


def test_a_model_that_runs_while_the_process_forks_is_refused_in_the_child():
    program = """
inside, leave = threading.Event(), threading.Event()

class Slow(ov.Op):
    def __init__(self, inputs=None):
        super().__init__(self, inputs)
    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))
    def clone_with_new_inputs(self, inputs):
        return Slow(inputs)
    def evaluate(self, outputs, inputs):
        inside.set()
        leave.wait()
        inputs[0].copy_to(outputs[0])
        return True
    def has_evaluate(self):
        return True

data = ops.parameter([2], np.float32)
slow = core.compile_model(ov.Model([Slow([data.output(0)]).output(0)], [data]), "CPU")
thread = threading.Thread(target=lambda: slow(np.ones(2, np.float32)))
thread.start()
inside.wait()

def work():
    leave.set()
    try:
        slow(np.ones(2, np.float32))
    except RuntimeError as error:
        told = "another thread was using this when the process forked" in str(error)
    return told and same(compiled(image)[0])

print(child(work))
leave.set()
thread.join()
"""
    assert run(program) == "True\n"


def test_a_child_that_ends_as_any_program_does_ends_well():
    program = """
queue = ov.AsyncInferQueue(compiled, 2)
queue.start_async(image)
queue.wait_all()
pid = os.fork()
if pid == 0:
    compiled(image)
    sys.exit(5)
print(os.waitpid(pid, 0)[1] >> 8)
"""
    assert run(program) == "5\n"
