"""What a graph knows of values before it runs, and types of values said by hand."""

from carafe._graph.clock import touch
from carafe._graph.engine import fact
from carafe._native import Dimension, PartialShape, Tensor, Type

__all__ = ["evaluate_as_partial_shape", "evaluate_both_bounds", "set_element_type", "set_tensor_type"]

# Shapes have no negative sizes; values are moved up by this for as long as they are one.
_UP = 1 << 40
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1


# The least and greatest elements, from the shape that the engine infers for something broadcast to them.
def _bounds(output):
    from carafe import opset13 as ops

    node = output.get_node()
    if node.get_type_name() == "Abs":
        return _bounds_of_abs(_bounds(node.input_value(0)))
    if not output.get_element_type().is_integral() or output.get_partial_shape().rank not in (0, 1):
        return None
    value = ops.add(ops.reshape(ops.convert(output, "i64"), [-1], False), _UP)
    shape = ops.broadcast(ops.parameter([1], Type.u8), value).get_output_partial_shape(0)
    if shape.rank.is_dynamic or (len(shape) and not any(d.get_min_length() or d.get_max_length() != -1 for d in shape)):
        return None
    low = [d.get_min_length() - _UP if d.get_min_length() else _LEAST for d in shape]
    high = [d.get_max_length() - _UP if d.get_max_length() != -1 else _GREATEST for d in shape]
    return low, high


def _bounds_of_abs(found):
    if found is None:
        return None
    ends = [(abs(low), abs(high), low <= 0 <= high) for low, high in zip(*found)]
    return [0 if zero else min(a, b) for a, b, zero in ends], [min(max(a, b), _GREATEST) for a, b, _ in ends]


def evaluate_both_bounds(output):
    """Tensors of the least and greatest elements that a value can have."""
    import numpy as np

    found = _bounds(output)
    if found is None:
        raise RuntimeError(f"nothing is known of the elements of {output!r}")
    kind = output.get_element_type().to_dtype()
    limits = np.iinfo(kind)
    shape = output.get_shape()
    return tuple(Tensor(np.clip(bound, limits.min, limits.max).astype(kind).reshape(shape)) for bound in map(np.array, found))


def evaluate_as_partial_shape(output, partial_shape):
    """Puts the bounds of a value into a shape of as many dimensions as it has elements; whether something is known of them."""
    found = _bounds(output)
    if found is None:
        return False
    dimensions = []
    for i, (low, high) in enumerate(zip(*found)):
        if high < 0:
            raise RuntimeError(f"element {i} is at most {high}, which is no size")
        dimensions.append(Dimension(max(low, 0), -1 if high == _GREATEST else high))
    partial_shape._become(PartialShape(dimensions))
    return True


def set_element_type(tensor, element_type):
    """Says the element type of a value of a graph."""
    set_tensor_type(tensor, element_type, tensor.get_partial_shape())


def set_tensor_type(tensor, element_type, partial_shape):
    """Says element type and shape of a value of a graph."""
    tensor._node._facts[tensor._index] = fact(element_type, PartialShape(partial_shape))
    touch()
