"""Batches: several tensors for one input, put together each time the request runs."""

import weakref

from carafe._native import InferRequest

_get_tensor, _set_tensors, _set_input_tensors = InferRequest.get_tensor, InferRequest.set_tensors, InferRequest.set_input_tensors

# For each request: the tensor of an input with those it is made of.
_batches = weakref.WeakKeyDictionary()


def _same(one, other):
    return one.data.ctypes.data == other.data.ctypes.data


def _keep(request, whole, parts):
    kept = [(old, of) for old, of in _batches.get(request, ()) if not _same(old, whole)]
    _batches[request] = [*kept, (whole, list(parts))]


def gather(request):
    """Puts the batches of a request together, unless another tensor was set since."""
    if not _batches or request not in _batches:
        return
    import numpy as np

    inputs = request.input_tensors
    kept = [(whole, parts) for whole, parts in _batches[request] if any(_same(whole, tensor) for tensor in inputs)]
    for whole, parts in kept:
        np.concatenate([part.data for part in parts], out=whole.data)
    _batches[request] = kept


def set_tensors(self, inputs, tensors=None):
    """Tensors by name, port or number of an input; or a batch of tensors for one input."""
    _set_tensors(self, inputs, tensors)
    if tensors is not None:
        _keep(self, _get_tensor(self, inputs), tensors)


def set_input_tensors(self, inputs, tensors=None):
    """Tensors by number or in order; or a batch of tensors for one input."""
    if tensors is None and isinstance(inputs, (list, tuple)) and len(inputs) > 1 and len(self.model_inputs) == 1:
        inputs, tensors = 0, inputs
    _set_input_tensors(self, inputs, tensors)
    if tensors is not None:
        _keep(self, self.get_input_tensor(inputs), tensors)


def get_tensor(self, key):
    """The tensor of an input or output by name or port."""
    found = _get_tensor(self, key)
    if _batches and any(_same(whole, found) for whole, _ in _batches.get(self, ())):
        raise RuntimeError("get_tensor shall not be used together with batched set_tensors/set_input_tensors")
    return found


InferRequest.get_tensor = get_tensor
InferRequest.set_tensors = set_tensors
InferRequest.set_input_tensors = set_input_tensors
