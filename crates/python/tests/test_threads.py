"""Eight threads on one compiled model: their own requests, queues, callbacks and exceptions. Without a global lock they really meet."""

import sys
import sysconfig
import threading

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops

THREADS, ROUNDS = 8, 40


@pytest.fixture(scope="module")
def shared():
    data = ops.parameter([-1, 16], np.float32, name="data")
    weights = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
    model = ov.Model([ops.matmul(data, ops.constant(weights), False, False)], [data])
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32"}), weights


def together(work):
    """Runs `work(seed)` on all threads at the same time and raises what one of them raised."""
    raised, start = [], threading.Barrier(THREADS)

    def body(seed):
        try:
            start.wait()
            work(seed)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def rows(seed, step):
    return np.random.default_rng(1000 * seed + step).standard_normal((1 + (seed + step) % 5, 16)).astype(np.float32)


def test_the_global_lock_stays_off_where_python_has_none():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has a global lock")
    assert not sys._is_gil_enabled()


def test_threads_call_one_compiled_model(shared):
    compiled, weights = shared

    def work(seed):
        for step in range(ROUNDS):
            x = rows(seed, step)
            np.testing.assert_allclose(compiled(x)[0], x @ weights, atol=1e-4)

    together(work)


def test_threads_have_requests_of_their_own(shared):
    compiled, weights = shared

    def work(seed):
        request = compiled.create_infer_request()
        for step in range(ROUNDS):
            x = rows(seed, step)
            request.start_async({"data": x}, share_inputs=step % 2 == 0)
            request.wait()
            np.testing.assert_allclose(request.get_output_tensor().data, x @ weights, atol=1e-4)

    together(work)


def test_callbacks_of_all_threads_hear_of_every_end(shared):
    compiled, weights = shared
    ended = [0] * THREADS

    def work(seed):
        queue = ov.AsyncInferQueue(compiled, 3)

        def callback(request, x):
            np.testing.assert_allclose(request.get_output_tensor().data, x @ weights, atol=1e-4)
            ended[seed] += 1

        queue.set_callback(callback)
        for step in range(ROUNDS):
            x = rows(seed, step)
            queue.start_async({0: x}, x)
        queue.wait_all()

    together(work)
    assert ended == [ROUNDS] * THREADS


def test_exceptions_reach_the_thread_whose_callback_raised(shared):
    compiled, _ = shared

    def work(seed):
        request = compiled.create_infer_request()

        def callback(number):
            if number % 3 == 0:
                raise ValueError(f"thread {seed}")

        for step in range(ROUNDS):
            request.set_callback(callback, step)
            request.start_async({"data": rows(seed, step)})
            if step % 3 == 0:
                with pytest.raises(ValueError, match=f"thread {seed}"):
                    request.wait()
            else:
                request.wait()
            with pytest.raises(RuntimeError):
                compiled(np.zeros((2, 7), np.float32))

    together(work)


def test_threads_read_compile_and_look_at_models(shared):
    def work(seed):
        for step in range(5):
            data = ops.parameter([2, 3 + seed], np.float32, name=f"data{seed}")
            model = ov.Model([ops.add(data, ops.constant(np.float32(step)))], [data])
            assert model.input(0).get_partial_shape().to_shape() == ov.Shape([2, 3 + seed])
            found = ov.Core().compile_model(model, "CPU")(np.zeros((2, 3 + seed), np.float32))[0]
            np.testing.assert_array_equal(found, np.full((2, 3 + seed), step, np.float32))

    together(work)


def test_threads_share_one_request_and_are_told_when_it_is_busy(shared):
    compiled, weights = shared
    request = compiled.create_infer_request()
    x = rows(1, 1)

    def work(seed):
        for _ in range(ROUNDS):
            try:
                request.infer({"data": x})
            except RuntimeError as error:
                assert "busy" in str(error).lower() or "running" in str(error)

    together(work)
    request.infer({"data": x})
    np.testing.assert_allclose(request.get_output_tensor().data, x @ weights, atol=1e-4)
