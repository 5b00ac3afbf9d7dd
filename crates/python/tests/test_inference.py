"""Inference: forms of inputs, results, shared memory."""

import copy

import numpy as np
import pytest

import carafe as ov


def test_results_are_found_by_number_name_and_port(compiled, image):
    results = compiled(image)
    port = compiled.output(0)
    for key in (0, port, port.any_name):
        np.testing.assert_array_equal(results[key], np.maximum(image, 0))
    with pytest.raises(KeyError):
        results["nobody"]
    assert [*results.values()][0] is results.to_tuple()[0]


@pytest.mark.parametrize("form", [lambda x: x, lambda x: [x], lambda x: (x,), lambda x: {0: x}, lambda x: {"data": x}, ov.Tensor])
def test_inputs_come_in_many_forms(compiled, image, form):
    np.testing.assert_array_equal(compiled(form(image))[0], np.maximum(image, 0))


def test_another_dtype_is_cast(compiled, image):
    np.testing.assert_array_equal(compiled(image.astype(np.float64))[0], np.maximum(image, 0))


def test_an_array_that_may_not_be_written_is_read_where_it_lies(compiled, image):
    image.setflags(write=False)
    request = compiled.create_infer_request()
    request.infer(image, share_inputs=True)
    assert np.shares_memory(request.get_input_tensor().data, image)


def test_a_call_that_copies_leaves_an_array_lent_before_alone(compiled, image):
    request = compiled.create_infer_request()
    request.infer(image, share_inputs=True)
    before = image.copy()
    request.infer(image + 1)
    np.testing.assert_array_equal(image, before)


def test_shared_outputs_are_written_by_the_next_inference(compiled, image):
    request = compiled.create_infer_request()
    shared = request.infer(image, share_outputs=True)[0]
    copied = request.infer(image)[0]
    request.infer(-image)
    np.testing.assert_array_equal(shared, np.maximum(-image, 0))
    np.testing.assert_array_equal(copied, np.maximum(image, 0))


def test_a_tensor_that_was_asked_for_once_sees_every_inference(compiled, image):
    request = compiled.create_infer_request()
    output = request.get_output_tensor()
    request.infer(image)
    np.testing.assert_array_equal(output.data, np.maximum(image, 0))


def test_shapes_may_change_from_one_inference_to_the_next(core, dynamic):
    compiled = core.compile_model(dynamic, "CPU")
    for n in (3, 5, 1):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(compiled(x, share_outputs=True)[0], 2 * x)


@pytest.mark.parametrize("wrong", [np.zeros((2, 4), np.float32), np.zeros(6, np.float32)])
@pytest.mark.parametrize("shared", [True, False])
def test_a_wrong_shape_is_an_error_that_says_both(compiled, wrong, shared):
    with pytest.raises(RuntimeError, match="2,3"):
        compiled(wrong, share_inputs=shared)


@pytest.mark.parametrize("wrong", [object(), {"data": object()}, {1.5: np.zeros((2, 3))}])
def test_what_is_no_input_is_a_type_error(compiled, wrong):
    with pytest.raises(TypeError):
        compiled(wrong)


def test_an_unknown_name_is_an_error_with_the_known_ones(compiled, image):
    with pytest.raises(RuntimeError, match="inputs are data"):
        compiled({"nobody": image})


def test_times_of_nodes_come_with_the_property(core, relu, image):
    compiled = core.compile_model(relu, "CPU", {"PERF_COUNT": True})
    request = compiled.create_infer_request()
    request.infer(image)
    assert any(node.status == ov.ProfilingInfo.Status.EXECUTED for node in request.profiling_info)
    assert request.latency > 0


def test_a_batch_of_tensors_is_read_anew_by_every_inference(core, compiled, image):
    request = compiled.create_infer_request()
    rows = [ov.Tensor(row[None].copy()) for row in image]
    request.set_input_tensors(rows)
    with pytest.raises(RuntimeError, match="batched"):
        request.get_tensor("data")
    for step in range(2):
        rows[1].data[:] = step
        np.testing.assert_array_equal(request.infer()[0], [np.maximum(image[0], 0), [step] * 3])
    request.set_input_tensor(ov.Tensor(image + 1))
    request.start_async()
    request.wait()
    np.testing.assert_array_equal(request.get_tensor(request.model_outputs[0]).data, np.maximum(image + 1, 0))


def test_ports_are_not_copied(compiled):
    with pytest.raises(TypeError, match="Cannot deepcopy 'openvino.ConstOutput' object."):
        copy.deepcopy(compiled.output(0))


def test_inputs_may_be_prepared_before_the_call(compiled, image):
    from carafe.utils.data_helpers import _data_dispatch

    request = compiled.create_infer_request()
    assert np.shares_memory(_data_dispatch(request, image, True).data, image)
    assert _data_dispatch(request, [image.astype(np.float64)], True)[0].element_type == ov.Type.f32
    assert _data_dispatch(request, {"data": image}, False) == {}
    np.testing.assert_array_equal(request.get_input_tensor().data, image)


def test_results_are_a_mapping_that_does_not_change(compiled, image):
    from collections.abc import Mapping

    results = compiled(image)
    assert isinstance(results, Mapping) and len(results) == 1 and 0 in results and 1 not in results
    assert results.get("nothing", 7) == 7 and results.get(compiled.output(0).any_name) is results[0]
    with pytest.raises(TypeError, match="does not support item assignment"):
        results[0] = image
    with pytest.raises(TypeError, match="Unknown key type"):
        results[1.5]
    with pytest.raises(KeyError):
        results[1]


def test_the_dict_of_results_is_theirs(compiled, image):
    results = compiled(image)
    plain = results.to_dict()
    plain[compiled.output(0)] = "changed"
    assert results[0] == results[compiled.output(0).any_name] == results[compiled.output(0)] == "changed"
    assert ov.OVDict(plain)[compiled.output(0).any_name] == "changed"


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint16, np.int64, np.bool_, ">f4"])
def test_arrays_of_any_dtype_and_order_are_read_right(compiled, image, dtype):
    array = np.abs(image).astype(dtype)
    np.testing.assert_array_equal(compiled(array)[0], array.astype(np.float32))
    np.testing.assert_array_equal(compiled(np.asfortranarray(array))[0], array.astype(np.float32))
    np.testing.assert_array_equal(compiled(array[::-1])[0], array[::-1].astype(np.float32))


def test_a_tensor_of_a_request_that_changes_its_shape_is_bound_anew(core, dynamic):
    request = core.compile_model(dynamic, "CPU").create_infer_request()
    request.infer([np.ones(4, np.float32)])
    tensor = request.get_input_tensor()
    tensor.shape = [2]
    tensor.data[:] = [1, 2]
    np.testing.assert_array_equal(request.infer()[0], [2, 4])
    tensor.data[:] = [3, 4]
    np.testing.assert_array_equal(request.infer()[0], [6, 8])


def test_an_array_after_a_batch_of_tensors_counts(compiled, image):
    request = compiled.create_infer_request()
    request.set_input_tensors([ov.Tensor(image[:1]), ov.Tensor(image[1:])])
    np.testing.assert_array_equal(request.infer()[0], np.maximum(image, 0))
    np.testing.assert_array_equal(request.infer([-image])[0], np.maximum(-image, 0))


def test_an_output_of_a_compiled_model_knows_what_computes_it(compiled):
    source = compiled.output(0).get_node().input(0).get_source_output()
    assert source.get_node().get_friendly_name() == "relu" and source.get_node().get_type_name() != "Parameter"


def test_setting_information_of_a_port_of_a_compiled_model_warns(compiled):
    with pytest.warns(DeprecationWarning, match="Setting rt_info via ConstOutput"):
        compiled.output(0).rt_info["key"] = "value"
    assert "key" in compiled.output(0).get_rt_info()
