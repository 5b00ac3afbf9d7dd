"""Inputs of an inference as tensors, for programs that prepare them before they call."""

import numbers

import numpy as np

from carafe._native import Tensor, Type

_PLAIN = (numbers.Number, np.number, np.bool_, str, bytes)


def _array(request, key, value):
    """A value in the type of an input; a single number for an input of one axis gets that axis."""
    port = request.model_inputs[key] if isinstance(key, int) else request.get_compiled_model().input(key)
    if port.element_type == Type.string:
        return value
    if value.ndim == 0 and port.partial_shape.rank == 1:
        value = value.reshape(1)
    return np.ascontiguousarray(value, port.element_type.to_dtype()).reshape(value.shape)


def _one(request, key, value, is_shared):
    """The tensor of an input, or nothing where the value was copied into the request."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (str, bytes)):
        return Tensor(np.array(value))
    if isinstance(value, _PLAIN):
        return Tensor(_array(request, key, np.array(value)).reshape(()))
    if isinstance(value, (list, tuple)):
        return Tensor(np.array(value))
    if not hasattr(value, "__array__"):
        raise TypeError(f"Incompatible inputs of type: {type(value)}")
    array = _array(request, key, np.asarray(value))
    if is_shared:
        return Tensor(array, shared_memory=array.dtype.kind not in "USO")
    if isinstance(key, int):
        request.set_input_tensor(key, Tensor(array))
    else:
        request.set_tensor(key, Tensor(array))
    return None


def data_dispatch(request, inputs=None, is_shared=False):
    """Tensors of the inputs, one alone or by key; those that are copied go into the request at once."""
    if inputs is None:
        return {}
    if isinstance(inputs, (list, tuple)):
        inputs = {0: inputs} if all(isinstance(one, (*_PLAIN, list)) for one in inputs) else dict(enumerate(inputs))
    if isinstance(inputs, dict):
        made = {key: _one(request, key, value, is_shared) for key, value in inputs.items()}
        return {key: tensor for key, tensor in made.items() if tensor is not None}
    made = _one(request, 0, inputs, is_shared)
    return {} if made is None else made
