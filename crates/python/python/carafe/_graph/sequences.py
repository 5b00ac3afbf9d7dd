"""Recurrent sequences as iterators over their cells."""

import numpy as np

from .control import tensor_iterator
from .factories import make_node
from .model import Model
from .ops import Constant, Parameter, Result

# Sequence to its cell and how many states it carries.
_CELLS = {"LSTMSequence": ("LSTMCell", "opset4", 2), "GRUSequence": ("GRUCell", "opset3", 1), "RNNSequence": ("RNNCell", "opset1", 1)}
_KEPT = ("hidden_size", "activations", "activations_alpha", "activations_beta", "clip", "linear_before_reset")


def to_iterators(model):
    """Replaces sequences of one direction whose rows all have the full length; others stay."""
    for node in model.get_ordered_ops():
        for body in node._bodies():
            to_iterators(body)
        if node.get_type_name() in _CELLS and _is_plain(node):
            _replace(node)


def _is_plain(node):
    _, _, states = _CELLS[node.get_type_name()]
    lengths, shape = node.input_value(1 + states).get_node(), node.get_input_partial_shape(0)
    if node.get_attributes()["direction"].lower() == "bidirectional" or shape.rank.is_dynamic or shape[1].is_dynamic:
        return False
    return isinstance(lengths, Constant) and bool(np.all(lengths.get_data() == shape[1].get_length()))


def _axis(value, kind, axis):
    return make_node(kind, "opset1", [value, Constant(np.array([axis], np.int64))], {})


def _replace(node):
    cell, opset, states = _CELLS[node.get_type_name()]
    attributes = node.get_attributes()
    backwards = attributes["direction"].lower() == "reverse"
    values = node.input_values()
    starts = [_axis(v, "Squeeze", 1) for v in values[1 : 1 + states]]
    weights = [_axis(v, "Squeeze", 0) for v in values[2 + states : 5 + states]]

    shape = node.get_input_partial_shape(0)
    step = Parameter(values[0].get_element_type(), [shape[0], 1, shape[2]])
    carried = [Parameter(s.get_output_element_type(0), s.get_output_partial_shape(0)) for s in starts]
    fixed = [Parameter(w.get_output_element_type(0), w.get_output_partial_shape(0)) for w in weights]
    chosen = {key: attributes[key] for key in _KEPT if key in attributes}
    made = make_node(cell, opset, [_axis(step, "Squeeze", 1), *carried, *fixed], chosen)
    results = [Result(made.output(i)) for i in range(states)]
    joined = Result(_axis(made.output(0), "Unsqueeze", 1).output(0))
    body = Model([*results, joined], [step, *carried, *fixed], "sequence_body")

    iterator = tensor_iterator()
    iterator.set_body(body)
    first, stride, last = (-1, -1, 0) if backwards else (0, 1, -1)
    iterator.set_sliced_input(step, values[0], first, stride, 1, last, 1)
    for parameter, start, result in zip(carried, starts, results):
        iterator.set_merged_input(parameter, start.output(0), result.output(0))
    for parameter, weight in zip(fixed, weights):
        iterator.set_invariant_input(parameter, weight.output(0))
    everything = iterator.get_concatenated_slices(joined.output(0), first, stride, 1, last, 1)
    ends = [iterator.get_iter_value(result.output(0), -1) for result in results]
    iterator.friendly_name = node.friendly_name
    for at, value in enumerate([everything, *ends]):
        node.output(at).replace(_axis(value, "Unsqueeze", 1).output(0))
