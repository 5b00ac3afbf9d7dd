"""Variables in place of pairs of inputs and outputs, and of what loops carry along."""

from .control import loop, tensor_iterator
from .descriptions import BodyOutputDescription, MergedInputDescription
from .names import find_output
from .ops import Constant, assign, read_value
from .variable import Variable, VariableInfo


def _pairs_of(model, pairs):
    if isinstance(pairs, dict):
        found = []
        for parameter, result in pairs.items():
            ends = find_output(model.inputs, parameter, None, "Input"), find_output(model.outputs, result, None, "Output")
            found.append((*(e.get_node() for e in ends), parameter, result))
        return found
    listed = [(p, r) for p, r in pairs]
    name = lambda end: min(end._get_names(0), default=end.friendly_name)  # noqa: E731
    return [(p, r, name(p), name(r)) for p, r in listed]


def _zeros(kind, shape):
    return Constant(kind, list(shape.to_shape()), [0])


def make_stateful(model, pairs):
    """Each pair becomes a variable that is read where the input was and assigned what the output gave."""
    found = _pairs_of(model, pairs)
    for parameter, result, input_name, output_name in found:
        shape, kind = parameter.get_partial_shape(), parameter.get_element_type()
        variable = Variable(VariableInfo(input_name + output_name, kind, shape))
        read = read_value(_zeros(kind, shape), variable) if shape.is_static else read_value(variable)
        read.friendly_name = parameter.friendly_name
        for target in parameter._targets(0):
            target._node._connect(target._index, read, 0)
        write = assign(result.input_value(0), variable)
        write.friendly_name = result.friendly_name
        model.remove_parameter(parameter)
        model.remove_result(result)
        model.add_sinks([write])
    return bool(found)


def low_latency(model, use_const_initializer):
    """What loops and iterators carry from step to step starts from a variable, and goes there at the end."""
    changed = False
    for node in model.get_ordered_ops():
        if not isinstance(node, (loop, tensor_iterator)):
            continue
        for number, carried in enumerate(node._body_inputs[0]):
            if isinstance(carried, MergedInputDescription):
                _keep(model, node, carried, number, use_const_initializer)
                changed = True
    if changed:
        model.validate_nodes_and_infer_types()
    return changed


def _keep(model, node, carried, number, use_const_initializer):
    start = node.input_value(carried.input_index)
    body = node._models[0]
    parameter = body.get_parameters()[carried.body_parameter_index]
    name = f"{node.friendly_name}/{parameter.friendly_name}/variable_{number}"
    shape, kind = start.get_partial_shape(), start.get_element_type()
    variable = Variable(VariableInfo(name, kind, shape))
    first = _zeros(kind, shape) if use_const_initializer and shape.is_static else start
    read = read_value(first, variable)
    node._connect(carried.input_index, read, 0)
    kept = [d for d in node._body_outputs[0] if isinstance(d, BodyOutputDescription)]
    ends = [d.output_index for d in kept if d.body_value_index == carried.body_value_index and d.iteration == -1]
    if ends:
        value = node.output(ends[0])
    else:
        result = body.get_results()[carried.body_value_index]
        value = node.get_iter_value(result.output(0), -1)
    model.add_sinks([assign(value, variable)])

