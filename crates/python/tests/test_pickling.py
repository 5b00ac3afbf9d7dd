"""Pickled models: by the files that they came from, or with what is in them."""

import pickle

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops


@pytest.fixture
def files(tmp_path):
    """The two files of a model `data + weights`."""
    data = ops.parameter([2, 300], np.float32, name="data")
    weights = ops.constant(np.arange(600, dtype=np.float32).reshape(2, 300))
    ov.save_model(ov.Model([ops.add(data, weights)], [data], "net"), tmp_path / "net.xml", compress_to_fp16=False)
    return tmp_path / "net.xml"


@pytest.fixture
def zeros():
    return np.zeros((2, 300), np.float32)


def test_a_compiled_model_of_files_is_pickled_by_path_properties_and_hash(core, files, zeros):
    compiled = core.compile_model(files, "CPU", {"PERF_COUNT": True, "NUM_STREAMS": 2})
    pickled = pickle.dumps(compiled)
    assert str(files).encode() in pickled and len(pickled) < 1200 < files.with_suffix(".bin").stat().st_size
    again = pickle.loads(pickled)
    assert again.get_property("PERF_COUNT") is True and again.get_property("NUM_STREAMS") == 2
    np.testing.assert_array_equal(again(zeros)[0], compiled(zeros)[0])


def test_properties_that_were_set_before_come_along(files):
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 2})
    again = pickle.loads(pickle.dumps(core.compile_model(files, "CPU", {"NUM_STREAMS": 1})))
    assert (again.get_property("INFERENCE_PRECISION_HINT"), again.get_property("NUM_STREAMS")) == (ov.Type.f32, 1)


def test_a_model_of_files_is_pickled_by_path_and_hash(core, files, zeros):
    model = core.read_model(files)
    pickled = pickle.dumps(model)
    assert str(files).encode() in pickled and len(pickled) < 1000
    np.testing.assert_array_equal(core.compile_model(pickle.loads(pickled), "CPU")(zeros)[0].ravel(), np.arange(600))


def test_a_model_that_was_read_and_then_compiled_is_pickled_by_its_files(core, files):
    assert str(files).encode() in pickle.dumps(core.compile_model(core.read_model(files), "CPU"))


def test_an_edited_model_is_pickled_with_what_is_in_it(core, files):
    model = core.read_model(files)
    model.reshape([2, 300])
    model.get_parameters()[0].set_friendly_name("other")
    pickled = pickle.dumps(model)
    assert str(files).encode() not in pickled
    files.unlink()
    assert pickle.loads(pickled).get_parameters()[0].get_friendly_name() == "other"


def test_a_file_that_has_changed_is_an_error(core, files):
    pickled = pickle.dumps(core.compile_model(files, "CPU"))
    weights = files.with_suffix(".bin")
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(RuntimeError, match=r"net.bin` has changed since the model was pickled: expected SHA-256 \w{64}, found \w{64}"):
        pickle.loads(pickled)


def test_a_file_that_is_gone_is_an_error(core, files):
    pickled = pickle.dumps(core.compile_model(files, "CPU"))
    files.with_suffix(".bin").unlink()
    with pytest.raises(RuntimeError, match="net.bin` is gone"):
        pickle.loads(pickled)


def test_a_model_whose_file_changed_after_it_was_compiled_is_pickled_with_what_is_in_it(core, files, zeros):
    compiled = core.compile_model(files, "CPU")
    wanted = compiled(zeros)[0]
    other = files.with_suffix(".new")
    other.write_bytes(b"")
    other.replace(files)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled))(zeros)[0], wanted)


def test_models_without_files_are_pickled_with_what_is_in_them(relu, compiled, image):
    for again in (pickle.loads(pickle.dumps(compiled)), ov.compile_model(pickle.loads(pickle.dumps(relu)), "CPU")):
        np.testing.assert_array_equal(again(image)[0], np.maximum(image, 0))
