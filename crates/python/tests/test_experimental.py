"""What a graph knows of values before it runs."""

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops
from carafe.experimental import evaluate_as_partial_shape, evaluate_both_bounds, set_element_type, set_tensor_type


@pytest.fixture
def sizes():
    """Sizes of a tensor [2..5,?,4]."""
    return ops.shape_of(ops.parameter([ov.Dimension(2, 5), -1, 4], np.float32))


def test_bounds_of_a_value_may_be_negative(sizes):
    low, high = evaluate_both_bounds(ops.add(sizes, [-3, 0, -10]).output(0))
    assert low.data.tolist() == [-1, 0, -6] and high.data.tolist() == [2, 2**63 - 1, -6]


def test_bounds_keep_type_and_shape(sizes):
    one = ops.gather(ops.convert(sizes, "i32"), np.int64(0), np.int64(0))
    low, high = evaluate_both_bounds(one.output(0))
    assert (low.data.item(), high.data.item()) == (2, 5)
    assert low.element_type == ov.Type.i32 and list(low.shape) == []


def test_bounds_make_a_shape(sizes):
    shape = ov.PartialShape([1, 1, 1])
    assert evaluate_as_partial_shape(sizes.output(0), shape)
    assert shape == ov.PartialShape([ov.Dimension(2, 5), -1, 4])


def test_of_an_input_nothing_is_known():
    data = ops.parameter([2], np.int64)
    assert not evaluate_as_partial_shape(data.output(0), ov.PartialShape([1, 1]))
    with pytest.raises(RuntimeError, match="nothing is known"):
        evaluate_both_bounds(data.output(0))


def test_type_and_shape_of_a_value_may_be_said():
    tensor = ops.add(np.zeros((2, 3)), np.zeros(3)).get_input_tensor(0)
    set_element_type(tensor, ov.Type.f32)
    assert tensor.element_type == ov.Type.f32 and tensor.partial_shape == ov.PartialShape([2, 3])
    set_tensor_type(tensor, ov.Type.i64, ov.PartialShape([-1, 6]))
    assert tensor.element_type == ov.Type.i64 and tensor.partial_shape == ov.PartialShape([-1, 6])


def test_a_shape_takes_the_bounds_of_absolute_values():
    shape = ov.PartialShape([(2, 5), 3])
    value = ops.abs(ops.subtract(ops.shape_of(ops.parameter(shape)), [4, 7]))
    found = ov.PartialShape([])
    assert ov.experimental.evaluate_as_partial_shape(value.output(0), found)
    assert found == ov.PartialShape([(0, 2), 4])
