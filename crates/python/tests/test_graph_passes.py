"""Passes: patterns, matchers, managers, and the passes that are ready."""

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops
from carafe import passes
from carafe._offline_transformations import compress_quantize_weights_transformation
from carafe.utils import replace_node


def types_of(model):
    return [n.get_type_name() for n in model.get_ordered_ops()]


def relu_model():
    data = ops.parameter([1, 2], np.float32, name="data")
    return ov.Model([ops.relu(data)], [data], "model")


class ReluToExp(passes.MatcherPass):
    def __init__(self):
        super().__init__()
        data = passes.AnyInput()
        relu = passes.WrapType("opset13.Relu", data)

        def callback(matcher):
            found = matcher.get_pattern_value_map()
            replace_node(found[relu].get_node(), ops.exp(found[data]))
            return True

        self.register_matcher(passes.Matcher(relu, "ReluToExp"), callback)


def test_a_matcher_pass_replaces_what_it_matches():
    model = relu_model()
    manager = passes.Manager()
    step = manager.register_pass(ReluToExp())
    assert manager.run_passes(model)
    assert step.get_name() == "ReluToExp"
    assert types_of(model) == ["Parameter", "Exp", "Result"]


def test_a_pass_reaches_into_bodies():
    part = ops.parameter([1, 2], np.float32)
    inner = ops.relu(part)
    iterator = ops.tensor_iterator()
    body = ov.Model([inner], [part])
    iterator.set_body(body)
    data = ops.parameter([3, 2], np.float32)
    iterator.set_sliced_input(part, data.output(0), 0, 1, 1, -1, 0)
    model = ov.Model([iterator.get_concatenated_slices(body.output(0), 0, 1, 1, -1, 0)], [data])
    manager = passes.Manager()
    manager.register_pass(ReluToExp())
    manager.run_passes(model)
    assert "Exp" in types_of(body)


def test_a_model_pass_is_called_with_the_model():
    class Rename(passes.ModelPass):
        def run_on_model(self, model):
            model.set_friendly_name("renamed")
            return True

    model = relu_model()
    manager = passes.Manager()
    manager.register_pass(Rename())
    manager.run_passes(model)
    assert model.friendly_name == "renamed"


def test_a_class_is_no_pass():
    with pytest.raises(TypeError):
        passes.Manager().register_pass(ReluToExp)


def test_operands_of_commutative_operations_match_in_either_order():
    data, constant = ops.parameter([2], np.float32), ops.constant(np.ones(2, np.float32))
    pattern = passes.WrapType("opset13.Add", [passes.WrapType("opset13.Constant"), passes.AnyInput()])
    assert passes.Matcher(pattern, "add").match(ops.add(data, constant))
    subtract = passes.WrapType("opset13.Subtract", [passes.WrapType("opset13.Constant"), passes.AnyInput()])
    assert not passes.Matcher(subtract, "subtract").match(ops.subtract(data, constant))


def test_a_pattern_node_that_stands_twice_must_match_the_same_value():
    data, other = ops.parameter([2], np.float32), ops.parameter([2], np.float32)
    value = passes.AnyInput()
    matcher = passes.Matcher(passes.WrapType("opset13.Multiply", [value, value]), "square")
    assert matcher.match(ops.multiply(data, data))
    assert not matcher.match(ops.multiply(data, other))


def test_names_in_a_pattern_of_shapes_are_found():
    matcher = passes.Matcher(passes.AnyInput(passes.shape_matches("[N,3,S,S]")), "picture")
    assert matcher.match(ops.parameter([2, 3, 8, 8], np.float32))
    assert matcher.get_symbols()["S"] == 8
    assert not matcher.match(ops.parameter([2, 3, 8, 9], np.float32))


def test_folding_constants_keeps_the_nodes_that_stay():
    data = ops.parameter([2], np.float32, name="data")
    total = ops.add(data, ops.exp(ops.constant(np.zeros(2, np.float32))), name="total")
    model = ov.Model([total], [data])
    passes.ConstantFolding().run_on_model(model)
    assert sorted(types_of(model)) == ["Add", "Constant", "Parameter", "Result"]
    assert model.get_results()[0].input_value(0).get_node() is total
    assert total.input_value(1).get_node().data.tolist() == [1, 1]


def test_a_pair_of_input_and_output_becomes_a_variable():
    data = ops.parameter([2], np.float32, name="data")
    state = ops.parameter([2], np.float32, name="state")
    total = ops.result(ops.add(data, state), name="total")
    model = ov.Model([ops.result(data), total], [data, state])
    passes.MakeStateful([(state, total)]).run_on_model(model)
    assert (len(model.inputs), len(model.outputs), len(model.get_sinks())) == (1, 1, 1)
    assert len(model.get_variables()) == 1


def test_a_model_computes_in_half_precision_after_conversion():
    model = relu_model()
    passes.ConvertFP32ToFP16().run_on_model(model)
    assert {n.get_output_element_type(0).get_type_name() for n in model.get_ops()} == {"f16"}


def test_quantized_weights_are_stored_as_bytes_and_compute_the_same():
    data = ops.parameter([1, 4], np.float32)
    weights = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    low, high = np.float32(-1), np.float32(1)
    quantized = ops.fake_quantize(ops.constant(weights), low, high, low, high, 255)
    model = ov.Model([ops.matmul(data, quantized, False, False)], [data])
    array = np.array([[1, 2, 3, 4]], np.float32)

    def run():
        result = ov.Tensor(np.zeros((1, 4), np.float32))
        model.evaluate([result], [ov.Tensor(array)])
        return np.array(result.data)

    before = run()
    compress_quantize_weights_transformation(model)
    assert "FakeQuantize" not in types_of(model)
    assert "i8" in [n.get_output_element_type(0).get_type_name() for n in model.get_ops()]
    np.testing.assert_allclose(run(), before, atol=1e-5)


def test_pruning_leaves_a_model_without_zero_channels_and_refuses_one_with():
    from carafe._offline_transformations import apply_pruning_transformation

    for first, refused in ((1, False), (0, True)):
        data = ops.parameter([1, 2], np.float32)
        weights = np.array([[first, first], [1, 1]], np.float32)
        model = ov.Model([ops.matmul(data, weights, False, True)], [data])
        if refused:
            with pytest.raises(NotImplementedError, match="zero channels"):
                apply_pruning_transformation(model)
        else:
            apply_pruning_transformation(model)
