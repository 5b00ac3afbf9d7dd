"""`carafe.distributed` by itself; scripts/python-distributed runs it on Ray, Dask and Spark."""

import asyncio
import pickle
import threading

import numpy as np
import pytest

import carafe as ov
from carafe import opset13
from carafe.distributed import BatchPredictor, predict_block, predict_fn


@pytest.fixture
def model(tmp_path):
    x = opset13.parameter([-1, 3], np.float32, name="x")
    x.output(0).set_names({"x"})
    y = opset13.multiply(x, opset13.constant(np.float32(2)))
    y.output(0).set_names({"y"})
    ov.save_model(ov.Model([y], [x], "twice"), tmp_path / "twice.xml")
    return str(tmp_path / "twice.xml")


ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_columns_become_inputs_and_outputs_columns(model):
    predict = BatchPredictor(model, inputs={"picture": "x"}, outputs={"y": "doubled"}, num_threads=1)
    ids = np.arange(4)
    found = predict({"picture": ROWS, "id": ids})
    assert sorted(found) == ["doubled", "id"]
    np.testing.assert_array_equal(found["doubled"], ROWS * 2)


def test_names_may_be_left_out_and_batches_read_only(model):
    rows = ROWS.copy()
    rows.flags.writeable = False
    np.testing.assert_array_equal(BatchPredictor(model)({"x": rows})["y"], ROWS * 2)


def test_a_predictor_is_sent_as_its_options(model):
    predict = BatchPredictor(model, inputs={"a": "x"}, num_threads=1)
    predict({"a": ROWS})
    again = pickle.loads(pickle.dumps(predict))
    np.testing.assert_array_equal(again({"a": ROWS})["y"], ROWS * 2)


def test_threads_of_a_worker_share_a_predictor(model):
    predict = BatchPredictor(model, num_threads=1)
    wrong = []

    def work(k):
        for i in range(20):
            if not np.array_equal(predict({"x": ROWS + k + i})["y"], (ROWS + k + i) * 2):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_event_loop_goes_on(model):
    predict = BatchPredictor(model, num_threads=1)

    async def both():
        return await asyncio.gather(predict.predict({"x": ROWS}), predict.predict({"x": ROWS + 1}))

    first, second = asyncio.run(both())
    np.testing.assert_array_equal(second["y"] - first["y"], np.full((4, 3), 2, np.float32))


def test_the_budget_of_the_worker_is_the_number_of_threads(model, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    request = BatchPredictor(model)._request()
    assert int(request.get_compiled_model().get_property("INFERENCE_NUM_THREADS")) == 1


def test_spark_and_dask_call_functions_of_arrays(model):
    np.testing.assert_array_equal(predict_fn(model)()(ROWS), ROWS * 2)
    np.testing.assert_array_equal(predict_block(ROWS, model), ROWS * 2)
