"""Models, nodes and their ends: building, looking, editing."""

import copy
import gc

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops
from carafe.utils import replace_node


def relu_model():
    data = ops.parameter([1, 2], np.float32, name="data")
    relu = ops.relu(data, name="relu")
    return ov.Model([relu], [data], "model"), data, relu


def test_a_node_infers_type_and_shape_when_it_is_made():
    left = ops.parameter(ov.PartialShape([-1, 2]), np.float32)
    node = ops.add(left, np.ones((3, 1), np.float32))
    assert node.get_output_element_type(0) == ov.Type.f32
    assert str(node.get_output_partial_shape(0)) == "[3,2]"


def test_a_node_that_cannot_be_is_refused_with_its_name():
    with pytest.raises(RuntimeError, match="sum"):
        ops.add(ops.parameter([2], np.float32), ops.parameter([3], np.float32), name="sum")


def test_numbers_and_operators_make_nodes():
    data = ops.parameter([2], np.float32)
    node = np.float32(1) / (data * np.float32(2) - np.ones(2, np.float32))
    assert [n.get_type_name() for n in (node, node.input_value(1).get_node())] == ["Divide", "Subtract"]


def test_the_same_node_is_found_from_everywhere():
    model, data, relu = relu_model()
    assert model.get_parameters()[0] is data
    assert relu.input(0).get_source_output().get_node() is data
    assert next(iter(data.output(0).get_target_inputs())).get_node() is relu


def test_a_reader_that_nobody_holds_is_gone():
    data = ops.parameter([2], np.float32)
    ops.relu(data)
    gc.collect()
    assert data.output(0).get_target_inputs() == set()


def test_inputs_and_outputs_without_names_are_called_by_their_nodes():
    model, _, _ = relu_model()
    assert model.input().get_any_name() == "data"
    assert model.output().get_names() == {model.get_results()[0].friendly_name}


def test_a_model_names_parameters_that_it_was_not_given():
    _, _, relu = relu_model()
    with pytest.raises(RuntimeError, match="undeclared parameters.*data"):
        ov.Model([relu], [])


def test_replacing_a_source_rewires_the_graph():
    model, data, relu = relu_model()
    tanh = ops.tanh(data)
    model.get_results()[0].input(0).replace_source_output(tanh.output(0))
    assert [n.get_type_name() for n in model.get_ordered_ops()] == ["Parameter", "Tanh", "Result"]
    assert relu.output(0).get_target_inputs() == set()


def test_replacing_a_node_keeps_the_names_of_its_outputs():
    model, data, relu = relu_model()
    relu.output(0).set_names({"y"})
    tanh = ops.tanh(data)
    replace_node(relu, tanh)
    assert "y" in tanh.output(0).get_names()


def test_an_edited_model_goes_to_the_engine_as_it_is_now():
    model, data, relu = relu_model()
    result = ov.Tensor(np.zeros((1, 2), np.float32))
    model.evaluate([result], [ov.Tensor(np.array([[-1, 2]], np.float32))])
    assert result.data.tolist() == [[0, 2]]
    replace_node(relu, ops.negative(data))
    model.evaluate([result], [ov.Tensor(np.array([[-1, 2]], np.float32))])
    assert result.data.tolist() == [[1, -2]]


@pytest.mark.parametrize("wanted", [[3, 2], "3,2", {0: [3, 2]}, {"data": (3, 2)}, ov.PartialShape([3, 2])])
def test_a_model_is_reshaped_by_any_form_of_shape(wanted):
    model, _, _ = relu_model()
    model.reshape(wanted)
    assert list(model.output().get_shape()) == [3, 2]


def test_a_reshape_that_fails_leaves_the_model_as_it_was():
    data = ops.parameter([1, 2], np.float32, name="data")
    model = ov.Model([ops.matmul(data, np.ones((2, 3), np.float32), False, False)], [data])
    with pytest.raises(RuntimeError):
        model.reshape([1, 5])
    assert list(model.input().get_shape()) == [1, 2]
    assert list(model.output().get_shape()) == [1, 3]


def test_a_clone_has_nodes_of_its_own():
    model, data, _ = relu_model()
    for other in (model.clone(), copy.deepcopy(model)):
        other.reshape([7, 2])
        assert other.get_parameters()[0] is not data
        assert list(model.output().get_shape()) == [1, 2]
    with pytest.raises(TypeError, match="deepcopy"):
        copy.copy(model)


def test_a_model_is_gone_behind_its_context():
    model, _, _ = relu_model()
    with model:
        pass
    with pytest.raises(AttributeError):
        model.get_ops()


def test_inner_values_become_outputs_by_name():
    model, _, relu = relu_model()
    relu.output(0).set_names({"y"})
    tanh = ops.tanh(relu)
    model.add_results([ops.result(tanh)])
    assert [o.get_node().get_type_name() for o in model.add_outputs(["y", ("data", 0)])] == ["Result", "Result"]
    assert len(model.outputs) == 3


def test_runtime_information_survives_a_clone_and_paths_of_it_are_found():
    model, _, relu = relu_model()
    relu.get_rt_info()["key"] = "value"
    model.set_rt_info(4, ["a", "b"])
    other = model.clone()
    assert other.get_rt_info(["a", "b"]).value == 4
    assert other.get_ordered_ops()[1].rt_info["key"].value == "value"
    assert not other.has_rt_info(["a", "c"])
    with pytest.raises(RuntimeError, match="Path to runtime attribute is incorrect"):
        other.get_rt_info("zz")


def test_attributes_are_read_and_set_by_methods_of_their_names():
    node = ops.softmax(ops.parameter([1, 2, 3], np.float32), 1)
    assert node.get_axis() == 1
    node.set_axis(2)
    assert node.get_attributes()["axis"] == 2
    with pytest.raises(AttributeError):
        node.get_unheard_of()


def test_a_constant_is_an_array_that_cannot_be_written():
    constant = ops.constant(np.arange(3, dtype=np.int8))
    assert constant.data.tolist() == [0, 1, 2]
    with pytest.raises(ValueError):
        constant.data[0] = 5


def test_a_shared_constant_follows_its_array():
    array = np.zeros(3, np.float32)
    constant = ops.constant(array, shared_memory=True)
    array[1] = 7
    assert constant.data.tolist() == [0, 7, 0]


def test_a_node_evaluates_by_itself():
    _, _, relu = relu_model()
    result = ov.Tensor(np.zeros((1, 2), np.float32))
    assert relu.evaluate([result], [ov.Tensor(np.array([[-1, 3]], np.float32))])
    assert result.data.tolist() == [[0, 3]]


def test_a_postponed_constant_takes_the_announced_shape(core):
    from carafe.utils import make_postponed_constant

    data = ops.parameter([1, 4], np.float32)
    late = make_postponed_constant(ov.Type.f32, ov.Shape([1, 4]), lambda: ov.Tensor(np.ones((2, 2), np.float32)))
    compiled = core.compile_model(ov.Model([ops.add(data, late)], [data]), "CPU")
    np.testing.assert_array_equal(compiled(np.zeros((1, 4), np.float32))[0], np.ones((1, 4)))


def test_what_a_model_does_not_have_is_told_as_in_openvino():
    model, _, _ = relu_model()
    with pytest.raises(AttributeError, match="'openvino._pyopenvino.Model' object has no attribute 'nothing'"):
        model.nothing


def test_a_node_is_no_key_for_reshape():
    model, data, _ = relu_model()
    with pytest.raises(TypeError, match="Incorrect key type <class 'openvino._pyopenvino.op.Parameter'>"):
        model.reshape({data: [1, 3]})


def test_a_postponed_constant_is_made_each_time_and_not_kept(tmp_path):
    from carafe.utils import make_postponed_constant

    made = []
    late = make_postponed_constant(ov.Type.f32, ov.Shape([2]), lambda: made.append(1) or ov.Tensor(np.ones(2, np.float32)))
    model = ov.Model([ops.relu(late)], [])
    for times in (1, 2):
        ov.save_model(model, tmp_path / "late.xml")
        assert len(made) == times


def test_shapes_that_do_not_broadcast_are_told_as_in_openvino():
    with pytest.raises(RuntimeError, match=r"Argument shapes are inconsistent: .*\[2\] and \[3\]"):
        ops.add(np.ones(2, np.float32), np.ones(3, np.float32))
