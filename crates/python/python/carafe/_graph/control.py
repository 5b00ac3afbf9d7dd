"""Nodes with bodies: If, Loop and TensorIterator. A body is a model of its own; descriptions say how ports meet."""

from . import engine
from .clock import touch
from .descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
    engine_inputs,
    engine_outputs,
    of_engine_inputs,
    of_engine_outputs,
)
from .node import Node
from .ports import Output, node_and_port
from .type_info import DiscreteTypeInfo


class _WithBodies(Node):
    _kind = ""
    _opset = ""
    _attributes = ()

    def __init__(self, *inputs):
        self._start()
        self._begin()
        self._inputs = [node_and_port(i) for i in inputs]
        self._attach()

    def _begin(self):
        count = len(self._attributes)
        self._models = [None] * count
        self._body_inputs = [[] for _ in range(count)]
        self._body_outputs = [[] for _ in range(count)]
        self._special = [-1, -1]

    def get_type_info(self):
        """Type of the operation and the opset that it is of."""
        return DiscreteTypeInfo(self._kind, self._opset)

    def get_attributes(self):
        """Bodies are no attributes here."""
        return {}

    def _bodies(self):
        return [m for m in self._models if m is not None]

    def _engine_op(self):
        parts = []
        for name, model, inputs, outputs in zip(self._attributes, self._models, self._body_inputs, self._body_outputs):
            if model is None:
                raise RuntimeError(f"{self._kind} '{self.friendly_name}' has no {name}")
            listed = engine_inputs(inputs)
            iteration, condition = (i if i >= 0 else None for i in self._special)
            if iteration is None and self._kind == "Loop":
                iteration = self._unread(model, listed)
            if iteration is not None and all(p != iteration for _, p, _, _ in listed):
                listed.append((None, iteration, None, None))
            parts.append((name, model._engine(), listed, engine_outputs(outputs), iteration, condition))
        return engine.GraphOp.with_bodies(self._kind, self._opset, parts)

    # A parameter that nothing feeds and nothing reads may get anything: the iteration number.
    @staticmethod
    def _unread(model, listed):
        fed = {parameter for _, parameter, _, _ in listed}
        free = [i for i, p in enumerate(model.get_parameters()) if i not in fed and not p._targets(0)]
        return free[0] if len(free) == 1 else None

    def _restore(self, entry):
        from .model import Model

        self._begin()
        parts = {part[0]: part for part in entry.op.bodies()}
        for i, name in enumerate(self._attributes):
            _, model, inputs, outputs, iteration, condition = parts[name]
            self._models[i] = Model._of_engine(model)
            self._body_inputs[i] = of_engine_inputs(inputs)
            self._body_outputs[i] = of_engine_outputs(outputs)
            self._special = [-1 if iteration is None else iteration, -1 if condition is None else condition]

    def _same_as(self, entry):
        return entry.op.type_name == self._kind

    def _refresh(self, entry, nodes):
        super()._refresh(entry, nodes)
        if not entry.op.same_as(self._engine_op()):
            self._restore(entry)

    def _infer(self):
        self._op = self._engine_op()
        super()._infer()

    def validate_and_infer_types(self):
        """Infers types and shapes of the outputs again."""
        self._infer()

    # Infers as soon as all is there; until then outputs are there and nothing is known of them.
    def _update(self):
        touch()
        count = max((d.output_index + 1 for listed in self._body_outputs for d in listed), default=0)
        try:
            self._infer()
        except RuntimeError:
            self._facts = (self._facts + [engine.unknown_fact()] * count)[:count]

    def _copy(self, inputs):
        copy = type(self).__new__(type(self))
        copy._start()
        copy._begin()
        copy._inputs = list(inputs)
        copy._attach()
        copy._models = [m.clone() if m is not None else None for m in self._models]
        copy._body_inputs = [[d.copy() for d in listed] for listed in self._body_inputs]
        copy._body_outputs = [[d.copy() for d in listed] for listed in self._body_outputs]
        copy._special = list(self._special)
        copy._update()
        return copy

    def _add_input(self, value):
        self._inputs.append(node_and_port(value))
        self._attach()
        return len(self._inputs) - 1

    def _set_model(self, index, model):
        self._models[index] = model
        self._update()

    def get_internal_subgraphs_size(self):
        """Number of bodies."""
        return len(self._models)


class _Iterated(_WithBodies):
    _attributes = ("body",)

    def get_function(self):
        """The body."""
        return self._models[0]

    def set_function(self, func):
        """Sets the body."""
        self._set_model(0, func)

    get_body = get_function
    set_body = set_function

    def get_input_descriptions(self):
        """How inputs reach the body."""
        return [d.copy() for d in self._body_inputs[0]]

    def set_input_descriptions(self, inputs):
        """Sets how inputs reach the body."""
        self._body_inputs[0] = [d.copy() for d in inputs]
        self._update()

    def get_output_descriptions(self):
        """How results leave the body."""
        return [d.copy() for d in self._body_outputs[0]]

    def set_output_descriptions(self, outputs):
        """Sets how results leave the body."""
        self._body_outputs[0] = [d.copy() for d in outputs]
        self._update()

    def _parameter(self, parameter):
        return self._models[0].get_parameter_index(parameter)

    def _value(self, value):
        index = self._models[0].get_result_index(value)
        if index < 0:
            raise RuntimeError("the value is no result of the body")
        return index

    def set_invariant_input(self, body_parameter, value):
        """Gives a parameter of the body the same value in every iteration."""
        at = self._add_input(value)
        self._body_inputs[0].append(InvariantInputDescription(at, self._parameter(body_parameter)))
        self._update()

    def set_merged_input(self, body_parameter, initial_value, successive_value):
        """Gives a parameter of the body a value at first, then what the previous iteration made."""
        at = self._add_input(initial_value)
        description = MergedInputDescription(at, self._parameter(body_parameter), self._value(successive_value))
        self._body_inputs[0].append(description)
        self._update()

    def set_sliced_input(self, parameter, value, start, stride, part_size, end, axis):
        """Gives a parameter of the body a part of a value in each iteration."""
        at = self._add_input(value)
        index = self._parameter(parameter)
        self._body_inputs[0].append(SliceInputDescription(at, index, start, stride, part_size, end, axis))
        self._update()

    def get_iter_value(self, body_value, iteration=-1):
        """An output with what the body made in one iteration, -1 for the last."""
        at = len(self._body_outputs[0])
        self._body_outputs[0].append(BodyOutputDescription(self._value(body_value), at, iteration))
        self._update()
        return Output(self, at)

    def get_concatenated_slices(self, value, start, stride, part_size, end, axis):
        """An output with what the body made in all iterations, joined."""
        at = len(self._body_outputs[0])
        index = self._value(value)
        self._body_outputs[0].append(ConcatOutputDescription(index, at, start, stride, part_size, end, axis))
        self._update()
        return Output(self, at)

    def get_num_iterations(self):
        """How often the body runs; -1 where that is not known."""
        for d in self._body_inputs[0]:
            if isinstance(d, SliceInputDescription):
                shape = self.get_input_partial_shape(d.input_index)
                if shape.rank.is_static and shape[d.axis].is_static:
                    return shape[d.axis].get_length() // max(1, abs(d.part_size))
        return -1


class tensor_iterator(_Iterated):  # noqa: N801
    """Runs a body for each part of its sliced inputs."""

    _kind, _opset = "TensorIterator", "opset1"


class loop(_Iterated):  # noqa: N801
    """Runs a body while a condition holds and the trip count is not reached."""

    _kind, _opset = "Loop", "opset5"

    def __init__(self, trip_count=None, execution_condition=None):
        given = [i for i in (trip_count, execution_condition) if i is not None]
        super().__init__(*given)

    def get_special_body_ports(self):
        """The parameter that gets the iteration number, and the result that is the condition; -1 for none."""
        return list(self._special)

    def set_special_body_ports(self, special_body_ports):
        """Sets the parameter of the iteration number and the result of the condition."""
        if len(special_body_ports) != 2:
            raise RuntimeError("two ports are expected: of the iteration number and of the condition")
        self._special = [int(p) for p in special_body_ports]
        self._update()

    def get_num_iterations(self):
        """How often the body runs; -1 where that is not known."""
        from .ops import Constant

        sources = [node for node, _ in self._inputs[:2]]
        if len(sources) == 2 and all(isinstance(s, Constant) for s in sources):
            trips, go = (int(s.get_vector()[0]) for s in sources)
            return trips if go else 0
        return -1


class if_op(_WithBodies):  # noqa: N801
    """Runs one of two bodies."""

    _kind, _opset = "If", "opset8"
    _attributes = ("then_body", "else_body")

    def __init__(self, execution_condition=None):
        super().__init__(*([] if execution_condition is None else [execution_condition]))

    def get_then_body(self):
        """Runs when the condition is true."""
        return self._models[0]

    def get_else_body(self):
        """Runs when the condition is false."""
        return self._models[1]

    def set_then_body(self, body):
        """Sets what runs when the condition is true."""
        self._set_model(0, body)

    def set_else_body(self, body):
        """Sets what runs when the condition is false."""
        self._set_model(1, body)

    def get_function(self, index):
        """A body by its number."""
        return self._models[index]

    def set_function(self, index, func):
        """Sets a body by its number."""
        self._set_model(index, func)

    def set_input(self, value, then_parameter, else_parameter):
        """Gives parameters of the bodies a value; `None` where a body does not take it."""
        at = self._add_input(value)
        for i, parameter in enumerate((then_parameter, else_parameter)):
            if parameter is not None:
                index = self._models[i].get_parameter_index(parameter)
                self._body_inputs[i].append(InvariantInputDescription(at, index))
        self._update()

    def set_output(self, then_result, else_result):
        """An output with this result of whichever body runs."""
        at = len(self._body_outputs[0])
        for i, result in enumerate((then_result, else_result)):
            index = self._models[i].get_result_index(result)
            self._body_outputs[i].append(BodyOutputDescription(index, at, -1))
        self._update()
        return Output(self, at)

    def get_input_descriptions(self, index):
        """How inputs reach a body."""
        return [d.copy() for d in self._body_inputs[index]]

    def set_input_descriptions(self, index, inputs):
        """Sets how inputs reach a body."""
        self._body_inputs[index] = [d.copy() for d in inputs]
        self._update()

    def get_output_descriptions(self, index):
        """How results leave a body."""
        return [d.copy() for d in self._body_outputs[index]]

    def set_output_descriptions(self, index, outputs):
        """Sets how results leave a body."""
        self._body_outputs[index] = [d.copy() for d in outputs]
        self._update()
