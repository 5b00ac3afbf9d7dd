"""Tensors, element types, shapes and memory of others."""

import numpy as np
import pytest

import carafe as ov


def test_a_shared_tensor_is_the_memory_of_the_array():
    array = np.zeros((2, 2), np.float32)
    tensor = ov.Tensor(array, shared_memory=True)
    array[0, 0] = 5
    tensor.data[1, 1] = 7
    assert tensor.data[0, 0] == 5 and array[1, 1] == 7


def test_an_array_that_cannot_be_shared_is_refused():
    with pytest.raises(RuntimeError, match="C contiguous"):
        ov.Tensor(np.zeros((4, 4), np.float32)[:, ::2], shared_memory=True)
    fixed = np.zeros(3, np.float32)
    fixed.setflags(write=False)
    with pytest.raises(ValueError):
        ov.Tensor(fixed, shared_memory=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_memory_goes_both_ways_by_dlpack(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(np.from_dlpack(ov.Tensor(array, shared_memory=True)), array)
    tensor = ov.Tensor.from_dlpack(array)
    assert np.shares_memory(tensor.data, array)


def test_what_dlpack_cannot_say_is_refused():
    with pytest.raises(BufferError):
        ov.Tensor(ov.Type.u4, [4]).__dlpack__()
    with pytest.raises(BufferError):
        ov.Tensor(["a", "b"]).__dlpack__()
    with pytest.raises(RuntimeError, match="contiguous"):
        ov.Tensor.from_dlpack(np.zeros((4, 4), np.float32)[:, ::2])


def test_bf16_has_the_dtype_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    tensor = ov.Tensor(array)
    assert tensor.element_type == ov.Type.bf16 and tensor.data.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(tensor.data, array)


def test_texts_come_back_as_str_and_bytes():
    tensor = ov.Tensor(["größe", "b"])
    assert tensor.str_data.tolist() == ["größe", "b"]
    assert tensor.bytes_data.tolist() == ["größe".encode(), b"b"]


def test_memory_of_the_program_does_not_grow():
    tensor = ov.Tensor(np.zeros(4, np.float32), shared_memory=True)
    tensor.shape = [2]
    with pytest.raises(RuntimeError, match="cannot grow"):
        tensor.shape = [8]


def test_a_size_beyond_all_memory_is_an_error():
    with pytest.raises((RuntimeError, MemoryError)):
        ov.Tensor(ov.Type.f32, [1 << 40, 1 << 20])


def test_texts_of_shapes_and_types_are_those_of_openvino():
    assert str(ov.PartialShape([-1, 3, (1, 4)])) == "[?,3,1..4]"
    assert repr(ov.PartialShape([1])) == "<PartialShape: [1]>"
    assert repr(ov.Type.f32) == "<Type: 'float32'>"
    assert str(ov.Layout("nchw")) == "[N,C,H,W]"
    assert repr(ov.Dimension(1, 4)) == "<Dimension: 1..4>"
    assert ov.Type.f32 != np.float32 and ov.Type(np.int64) == ov.Type.i64


def test_a_picture_of_an_array_interface_alone_is_a_tensor():
    class Picture:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.kept = array

    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    np.testing.assert_array_equal(ov.Tensor(Picture(array)).data, array)


def test_dimensions_that_are_none_are_told_as_in_openvino():
    for text, said in (("C", 'dimension: "C"'), ("?..5", 'min bound: "?"'), ("5..?", 'max bound: "?"')):
        with pytest.raises(RuntimeError, match=r"Cannot parse " + said.replace("?", r"\?")):
            ov.Dimension(text)
