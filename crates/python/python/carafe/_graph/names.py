"""How inputs, outputs and inner values of a model are found, and what a call of `reshape` means."""

from . import engine
from .node import Node
from .ops import Parameter, Result
from .ports import Output


def find_output(ports, which, name, kind):
    """One of the inputs or outputs of a model."""
    name = name if name is not None else which if isinstance(which, str) else None
    if name is not None:
        found = next((p for p in ports if name in p.get_names()), None)
        if found is None:
            raise RuntimeError(f"{kind} for tensor name '{name}' is not found.")
        return found
    if which is None:
        if len(ports) != 1:
            what = "input() must be called on a Model with exactly one parameter."
            raise RuntimeError(what if kind == "Input" else "output() must be called on a Model with exactly one result.")
        return ports[0]
    if not 0 <= which < len(ports):
        raise IndexError(f"{kind.lower()} {which} is asked for, there are {len(ports)}")
    return ports[which]


def add_outputs(model, outputs):
    """Makes values outputs of a model. One that is already an output, and where nobody else reads it, stays that output."""
    wanted = outputs if isinstance(outputs, (list, set)) else [outputs]
    made = []
    for at, entry in enumerate(wanted):
        if isinstance(entry, str):
            port = _by_tensor_name(model, entry)
        elif isinstance(entry, tuple):
            port = _by_node_name(model, *entry)
        elif isinstance(entry, Output):
            port = entry
        else:
            where = f" at index {at}" if wanted is outputs else ""
            raise TypeError(f"Incorrect type of a value to add as output{where}.")
        made.append(_result_of(model, port))
    return made


def _result_of(model, port):
    if isinstance(port.get_node(), Result):
        return port
    for result in model._results:
        if result._inputs[0] == (port.get_node(), port.get_index()):
            return Output(result, 0)
    result = Result(port)
    model.add_results([result])
    return Output(result, 0)


def _by_tensor_name(model, name):
    for node in model.get_ordered_ops():
        for port in node.outputs():
            if name in node._names.get(port.get_index(), ()):
                return port
    raise RuntimeError(f"Tensor name '{name}' was not found.")


def _by_node_name(model, name, port):
    for node in model.get_ordered_ops():
        if node.friendly_name == name and port < node.get_output_size():
            return node.output(port)
    raise RuntimeError(f"Port {port} for operation with name {name} was not found.")


def reshape_wishes(model, wanted):
    """Parameters with their new shapes."""
    if isinstance(wanted, dict):
        return [(_parameter_of(model, key), _shape(value)) for key, value in wanted.items()]
    inputs = model.inputs
    if len(inputs) != 1:
        raise RuntimeError("reshape() with one shape must be called on a Model with exactly one parameter.")
    return [(inputs[0].get_node(), _shape(wanted))]


def variable_wishes(model, wanted):
    """Variables with their new shapes."""
    found = []
    for key, value in (wanted or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"Incorrect key type {type(key)} to reshape a model, expected values as str.")
        shape, variable = _shape(value), model.get_variable_by_id(key)
        if variable is None:
            raise RuntimeError(f"variable '{key}' is not of this model")
        found.append((variable, shape))
    return found


def _parameter_of(model, key):
    if isinstance(key, (int, str)):
        return model.input(key).get_node()
    if hasattr(key, "get_node") and isinstance(key.get_node(), Parameter):
        return key.get_node()
    kind = f"<class 'openvino._pyopenvino.op.{type(key).__name__}'>" if isinstance(key, Node) else type(key)
    raise TypeError(f"Incorrect key type {kind} to reshape a model, expected keys as openvino.Output, int or str.")


def _shape(value):
    if not isinstance(value, (engine.PartialShape, list, tuple, str)):
        raise TypeError(
            f"Incorrect value type {type(value)} to reshape a model, expected values as openvino.PartialShape, str, list or tuple."
        )
    return engine.PartialShape(value)
