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


def _picture(shape=(1, 3, 3, 1)):
    data = ov.op.Parameter(ov.Type.f32, ov.PartialShape(list(shape)))
    return ov.Model([data.output(0)], [data])


def test_a_picture_in_colours_without_a_layout_is_channels_last(core):
    steps = PrePostProcessor(_picture())
    steps.input().tensor().set_color_format(ColorFormat.RGB)
    steps.input().preprocess().convert_color(ColorFormat.GRAY)
    model = steps.build()
    assert list(model.input().shape) == [1, 3, 3, 3]
    picture = np.full((1, 3, 3, 3), 10, np.float32)
    np.testing.assert_allclose(core.compile_model(model, "CPU")(picture)[0], np.full((1, 3, 3, 1), 10), rtol=1e-5)


@pytest.mark.parametrize("shape", [[1, 2, 2, 2], [1, 5, 1, 1], [1, -1, 2, 2]])
def test_any_number_of_channels_is_reversed(core, shape):
    steps = PrePostProcessor(_picture(shape))
    steps.input().tensor().set_layout(ov.Layout("NCHW"))
    steps.input().preprocess().reverse_channels()
    data = np.arange(np.prod(np.abs(shape)) * 3, dtype=np.float32).reshape(1, -1, *shape[2:])[:, : abs(shape[1]) + 2 * (shape[1] < 0)]
    np.testing.assert_array_equal(core.compile_model(steps.build(), "CPU")(data)[0], data[:, ::-1])


def test_a_type_that_is_left_out_is_that_of_the_tensor(relu):
    steps = PrePostProcessor(relu)
    steps.output().postprocess().convert_element_type(ov.Type.f16).convert_element_type()
    steps.output().tensor().set_element_type(ov.Type.f32)
    kinds = [node.get_type_name() for node in steps.build().get_ops()]
    assert kinds.count("Convert") == 2


def test_sizes_that_do_not_fit_the_model_are_told_as_in_openvino():
    steps = PrePostProcessor(_picture())
    steps.input().preprocess().pad([0, 0, 1, 0], [0, 0, 0, 0], 0, PaddingMode.CONSTANT)
    with pytest.raises(RuntimeError, match="not aligned with original parameter's shape"):
        steps.build()


def test_a_processor_prints_its_steps_and_can_still_be_built():
    steps = PrePostProcessor(_picture([1, 3, 4, 4]))
    steps.input().tensor().set_layout(ov.Layout("NHWC")).set_element_type(ov.Type.u8)
    steps.input().preprocess().convert_element_type(ov.Type.f32).mean([1, 2, 3])
    steps.input().model().set_layout(ov.Layout("NCHW"))
    text = str(steps)
    assert "Pre-processing steps (2):" in text and "Implicit pre-processing steps (1):" in text
    assert "mean (1,2,3): ([1,4,4,3], [N,H,W,C], f32) -> ([1,4,4,3], [N,H,W,C], f32)" in text
    assert steps.build().input().element_type == ov.Type.u8
