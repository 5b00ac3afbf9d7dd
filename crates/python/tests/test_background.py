"""Requests in the background, queues, threads, forks and the end of the interpreter."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import carafe as ov

MODEL = """
import numpy as np
import carafe as ov
from carafe import opset13 as ops
data = ops.parameter([2, 3], np.float32, name="data")
compiled = ov.Core().compile_model(ov.Model([ops.relu(data)], [data], "relu"), "CPU")
image = np.ones((2, 3), np.float32)
"""


def run(script):
    done = subprocess.run([sys.executable, "-c", MODEL + script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_request_runs_in_the_background_and_calls_back(compiled, image):
    request = compiled.create_infer_request()
    heard = []
    request.set_callback(heard.append, "userdata")
    request.start_async(image)
    request.wait()
    assert heard == ["userdata"]
    np.testing.assert_array_equal(request.results[0], np.maximum(image, 0))


def test_what_a_callback_raises_is_raised_by_wait(compiled, image):
    request = compiled.create_infer_request()

    def callback(_):
        raise ValueError("mine")

    request.set_callback(callback, None)
    request.start_async(image)
    with pytest.raises(ValueError, match="mine"):
        request.wait()


def test_a_queue_hears_of_every_end_with_its_userdata(compiled, image):
    queue = ov.AsyncInferQueue(compiled, 3)
    heard = {}
    queue.set_callback(lambda request, number: heard.update({number: request.get_output_tensor().data[1, 2]}))
    for number in range(20):
        queue.start_async({0: image * number}, number)
    queue.wait_all()
    assert heard == {number: 6 * number for number in range(20)}
    assert len(queue) == 3 and len(list(queue)) == 3


def test_what_the_callback_of_a_queue_raises_comes_with_the_next_call(compiled, image):
    queue = ov.AsyncInferQueue(compiled, 2)

    def callback(request, number):
        if number == 1:
            raise ValueError("mine")

    queue.set_callback(callback)
    with pytest.raises(ValueError, match="mine"):
        for number in range(5):
            queue.start_async(image, number)
        queue.wait_all()
    queue.start_async(image, 7)
    queue.wait_all()


def test_eight_threads_share_a_compiled_model(compiled):
    wrong = []

    def work(seed):
        for step in range(50):
            x = np.full((2, 3), seed * 100 + step, np.float32)
            if not np.array_equal(compiled(x)[0], x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_ends_while_a_request_runs():
    run("request = compiled.create_infer_request()\nrequest.set_callback(lambda _: None, None)\nrequest.start_async(image)\n")
    run("queue = ov.AsyncInferQueue(compiled, 4)\nqueue.set_callback(lambda r, u: None)\n[queue.start_async(image) for _ in range(50)]\n")
