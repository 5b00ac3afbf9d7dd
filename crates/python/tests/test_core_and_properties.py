"""Reading, compiling, devices and properties."""

import io
from pathlib import Path

import numpy as np
import pytest

import carafe as ov
from carafe import properties
from carafe.properties import hint, streams


def test_a_model_is_written_and_read_in_every_form(core, relu, image, tmp_path):
    path = tmp_path / "relu.xml"
    ov.save_model(relu, path)
    xml, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    forms = [(path, None), (str(path), None), (xml, weights), (io.BytesIO(xml), io.BytesIO(weights)), (xml.decode(), ov.Tensor(np.zeros(1, np.uint8)))]
    for model, given in forms:
        np.testing.assert_array_equal(core.compile_model(core.read_model(model, given), "CPU")(image)[0], np.maximum(image, 0))


def test_a_compiled_model_is_exported_and_imported(core, compiled, image):
    again = core.import_model(compiled.export_model(), "CPU")
    np.testing.assert_array_equal(again(image)[0], np.maximum(image, 0))


def test_properties_have_types(core, compiled):
    assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    assert isinstance(compiled.get_property(streams.num), int)
    assert isinstance(core.get_property("CPU", hint.inference_precision), ov.Type)
    assert core.get_property("CPU", hint.enable_cpu_pinning) is False
    assert "PERF_COUNT" in core.get_property("CPU", properties.supported_properties)
    assert core.get_property("CPU", hint.performance_mode) == hint.PerformanceMode.LATENCY


def test_properties_are_set_as_values_texts_and_pairs():
    core = ov.Core()
    for given in ({"PERF_COUNT": True}, {properties.enable_profiling: "YES"}, properties.enable_profiling(True), {}):
        core.set_property("CPU", given)
        assert core.get_property("CPU", "PERF_COUNT") is True


def test_an_unknown_property_is_an_error_with_the_known_ones(core):
    with pytest.raises(RuntimeError, match="known: .*PERF_COUNT"):
        core.set_property("CPU", {"PERF_CONT": True})


def test_a_path_that_is_not_there_is_an_error(core):
    with pytest.raises(RuntimeError, match="nobody.xml"):
        core.read_model(Path("nobody.xml"))


def test_an_object_of_a_framework_is_refused_with_advice():
    with pytest.raises(NotImplementedError, match="torch.onnx.export"):
        ov.convert_model(object())


def test_preprocessing_goes_into_the_model(core, relu):
    steps = ov.preprocess.PrePostProcessor(relu)
    steps.input().tensor().set_element_type(ov.Type.u8)
    steps.input().preprocess().convert_element_type(ov.Type.f32).mean(2.0).scale(2.0)
    steps.input().preprocess().custom(lambda value: ov.opset13.negative(value))
    compiled = core.compile_model(steps.build(), "CPU")
    data = np.array([[0, 1, 2], [3, 4, 5]], np.uint8)
    np.testing.assert_allclose(compiled(data)[0], np.maximum(-(data.astype(np.float32) - 2) / 2, 0))


def test_what_a_custom_step_raises_comes_out_of_build(relu):
    steps = ov.preprocess.PrePostProcessor(relu)

    def wrong(value):
        raise ValueError("mine")

    steps.input().preprocess().custom(wrong)
    with pytest.raises(ValueError, match="mine"):
        steps.build()


def _turned(data):
    return bytes(byte ^ 85 for byte in data)


def test_an_export_goes_through_the_functions_of_the_program(core, relu, image, tmp_path):
    callbacks = {"CACHE_ENCRYPTION_CALLBACKS": [_turned, _turned]}
    exported = core.compile_model(relu, "CPU", callbacks).export_model().getvalue()
    plain = core.compile_model(relu, "CPU").export_model().getvalue()
    assert _turned(plain)[:64] in exported
    imported = core.import_model(exported, "CPU", callbacks)
    np.testing.assert_array_equal(imported(image)[0], np.maximum(image, 0))
    assert core.import_model(plain, "CPU", callbacks)(image)
    with pytest.raises(RuntimeError, match="is encrypted"):
        core.import_model(exported, "CPU")
    with pytest.raises(RuntimeError, match="files of CACHE_DIR are not encrypted"):
        core.compile_model(relu, "CPU", {**callbacks, "CACHE_DIR": str(tmp_path)})


def test_a_node_that_keeps_its_precision_keeps_it_in_files(core, relu, tmp_path):
    node = next(op for op in relu.get_ops() if op.get_type_name() == "Relu")
    node.get_rt_info()["precise_0"] = ""
    ov.serialize(relu, tmp_path / "a.xml", tmp_path / "a.bin")
    read = next(op for op in core.read_model(tmp_path / "a.xml").get_ops() if op.get_type_name() == "Relu")
    assert "DisablePrecisionConversion_0" in read.get_rt_info()
    assert "DisablePrecisionConversion_0" not in node.get_rt_info()


def test_a_file_of_version_10_is_read_again(core, relu, image, tmp_path):
    ov.serialize(relu, tmp_path / "a.xml", tmp_path / "a.bin", "IR_V10")
    assert 'version="10"' in (tmp_path / "a.xml").read_text()
    np.testing.assert_array_equal(core.compile_model(tmp_path / "a.xml", "CPU")(image)[0], np.maximum(image, 0))


def test_an_extension_that_says_nothing_adds_nothing(core):
    class Empty(ov.Extension):
        pass

    core.add_extension([Empty(), Empty()])


def test_arguments_of_a_conversion_that_would_be_ignored_are_refused(relu, tmp_path):
    path = tmp_path / "relu.xml"
    ov.save_model(relu, path)
    for given in ({"example_input": np.zeros(1)}, {"dynamo": True}):
        with pytest.raises(NotImplementedError, match=next(iter(given))):
            ov.convert_model(path, **given)
    assert ov.convert_model(path, share_weights=False, dynamo=False).input(0).get_any_name() == "data"


def test_smart_reshape_is_refused_where_it_would_change_something(relu):
    from carafe import opset13 as ops
    from carafe._offline_transformations import apply_moc_transformations

    apply_moc_transformations(relu, cf=False, smart_reshape=True)
    data = ops.parameter([2, 3], np.float32)
    reshaped = ov.Model([ops.reshape(data, np.array([6]), False)], [data])
    with pytest.raises(NotImplementedError, match="smart_reshape"):
        apply_moc_transformations(reshaped, cf=False, smart_reshape=True)
