"""Steps before the inputs and behind the outputs of models."""

import numpy as np
import pytest

import carafe as ov
from carafe import layout_helpers
from carafe.preprocess import ColorFormat, PaddingMode, PrePostProcessor


def _with_bytes(model):
    steps = PrePostProcessor(model)
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NC"))
    return steps.build()


def test_the_model_that_was_given_has_the_steps(core, relu, image):
    parameter = relu.get_parameters()[0]
    assert _with_bytes(relu) is relu
    assert relu.input().element_type == ov.Type.u8 and relu.input().names == {"data"}
    assert layout_helpers.get_layout(relu.input()) == ov.Layout("[N,C]")
    assert relu.get_parameter_index(parameter) == 0
    compiled = core.compile_model(relu, "CPU")
    np.testing.assert_array_equal(compiled(np.abs(image).astype(np.uint8))[0], np.abs(image))


def test_a_model_that_was_read_has_the_steps(core, relu, tmp_path):
    ov.save_model(relu, tmp_path / "relu.xml")
    read = core.read_model(tmp_path / "relu.xml")
    _with_bytes(read)
    assert read.input().element_type == ov.Type.u8 and read.friendly_name == "relu"
    assert core.read_model(tmp_path / "relu.xml").input().element_type == ov.Type.f32


def test_colours_that_do_not_convert_are_told_as_in_openvino():
    data = ov.op.Parameter(ov.Type.f32, ov.PartialShape([1, 3, 3, 3]))
    steps = PrePostProcessor(ov.Model([data.output(0)], [data]))
    steps.input().tensor().set_layout(ov.Layout("NCHW")).set_color_format(ColorFormat.RGB)
    steps.input().preprocess().convert_color(ColorFormat.BGRX)
    with pytest.raises(RuntimeError, match="'Rgb' is not convertible to 'Bgrx'"):
        steps.build()


def test_pads_for_other_axes_are_told_as_in_openvino(relu):
    steps = PrePostProcessor(relu)
    steps.input().preprocess().pad([0, 0, 1], [0, 0, 1], 0, PaddingMode.CONSTANT)
    with pytest.raises(RuntimeError, match="mismatches with rank of input"):
        steps.build()
    assert PrePostProcessor(relu).build() is relu
