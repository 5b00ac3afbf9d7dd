"""Models: the ends of a free graph. A model that was read stays the engine's until somebody looks into it; one that was
looked at and not edited is handed back to the engine as it came."""

import copyreg
import itertools

from carafe import _pickling

from . import engine
from .clock import now, touch
from .exchange import expand, take_over, to_engine
from .model_arguments import arguments_of, as_results, position
from .names import add_outputs, find_output, reshape_wishes, variable_wishes
from .node import Node
from .ops import Parameter
from .ports import Output
from .rt_info import OVAny, RTMap, map_of_tree, plain, walk
from .variable import Variable

_numbers = itertools.count()


class Model:
    """A graph with inputs and outputs."""

    def __init__(self, *args, **kwargs):
        self._number = next(_numbers)
        self._native, self._synced, self._dead = None, -1, False
        if len(args) == 1 and isinstance(args[0], Model):
            self._share(args[0])
            return
        if len(args) == 1 and not kwargs and isinstance(args[0], engine.EngineModel):
            self._adopt(args[0])
            return
        self._rt, self._expanded = RTMap(), True
        self._build(*arguments_of(args, kwargs))

    @classmethod
    def _of_engine(cls, native):
        model = cls.__new__(cls)
        model._number = next(_numbers)
        model._dead = False
        model._adopt(native)
        return model

    # Keeps a model of the engine, unopened.
    def _adopt(self, native):
        self._native, self._synced, self._expanded = native, now(), False
        self._friendly, self._rt = native.name or None, RTMap(map_of_tree(native.rt_info()))

    def _share(self, other):
        self.__dict__.update({k: v for k, v in other._open().__dict__.items() if k != "_number"})

    @classmethod
    def _of_nodes(cls, parameters, results, sinks, variables):
        model = cls.__new__(cls)
        model._number = next(_numbers)
        model._native, model._synced, model._dead, model._expanded = None, -1, False, True
        model._parameters, model._results, model._sinks, model._variables = parameters, results, sinks, variables
        model._rt, model._friendly = RTMap(), None
        return model

    def _build(self, results, sinks, parameters, variables, name):
        self._friendly = name or None
        self._parameters = list(parameters)
        self._results = [r for value in results for r in as_results(value)]
        self._sinks = [s.get_node() if isinstance(s, Output) else s for s in sinks]
        self._variables = list(variables)
        self._collect_variables()
        self._check_parameters()
        self._name_ends()

    # Inputs and outputs without names are called by the names of their nodes.
    def _name_ends(self):
        for end in itertools.chain(self._parameters, self._results):
            if not end._get_names(0):
                end._names[0] = {end.friendly_name}

    def _check_parameters(self):
        known = {id(p) for p in self._parameters}
        missing = [n for n in self.get_ordered_ops() if isinstance(n, Parameter) and id(n) not in known]
        if missing:
            raise RuntimeError(f"Model references undeclared parameters: {', '.join(map(repr, missing))}")

    def _collect_variables(self):
        known = {v.info.variable_id for v in self._variables}
        for node in self.get_ordered_ops():
            variable = getattr(node, "_variable", None)
            if variable is not None and variable.info.variable_id not in known:
                known.add(variable.info.variable_id)
                self._variables.append(variable)

    # Between the engine and the free graph.

    def _open(self):
        if self._dead:
            raise AttributeError("'Model' object has no attribute or attribute is no longer accessible.")
        if not self._expanded:
            self._expanded = True
            expand(self, self._native)
            self._synced = now()
        return self

    def _engine(self):
        """The model as the engine has it; made anew only after an edit, or where constants are to be made each time."""
        if self._dead:
            raise AttributeError("the model is no longer accessible")
        if self._native is None or (self._expanded and self._synced != now()):
            native = to_engine(self)
            if any(node._postponed for node in self.get_ordered_ops()):
                return native
            self._native, self._synced = native, now()
        return self._native

    # Takes over what a pass of the engine made; nodes that are still there keep their identity by name.
    def _take(self, native, ends=False):
        take_over(self, native, ends)
        touch()
        self._native, self._synced = native, now()

    # Becomes what the engine made of it; one that nobody looked into stays unopened.
    def _become(self, native):
        self._take(native, True) if self._expanded else self._adopt(native)
        return self

    # Names.

    def get_name(self):
        """Unique name."""
        return f"Model{self._number}"

    def get_friendly_name(self):
        """The name that users see."""
        return self._friendly if self._friendly is not None else self.get_name()

    def set_friendly_name(self, name):
        """Sets the name that users see."""
        self._open()._friendly = str(name)
        touch()

    name = property(get_name)
    friendly_name = property(get_friendly_name, set_friendly_name)

    # Ends.

    def get_parameters(self):
        """Parameters, in order."""
        return list(self._open()._parameters)

    def get_results(self):
        """Results, in order."""
        return list(self._open()._results)

    def get_result(self):
        """The only result."""
        if len(self._open()._results) != 1:
            raise RuntimeError("get_result() must be called on a Model with exactly one result.")
        return self._results[0]

    def get_sinks(self):
        """Nodes that must run although nothing reads them."""
        return list(self._open()._sinks)

    def get_variables(self):
        """Variables that the model reads and assigns."""
        return list(self._open()._variables)

    parameters = property(get_parameters)
    results = property(get_results)
    result = property(get_result)
    sinks = property(get_sinks)
    variables = property(get_variables)

    @property
    def inputs(self):
        """Inputs of the model."""
        return [Output(p, 0) for p in self._open()._parameters]

    @property
    def outputs(self):
        """Outputs of the model."""
        return [Output(r, 0) for r in self._open()._results]

    def input(self, which=None, *, index=None, tensor_name=None):
        """An input by position or name; the only one without either."""
        return find_output(self.inputs, which if which is not None else index, tensor_name, "Input")

    def output(self, which=None, *, index=None, tensor_name=None):
        """An output by position or name; the only one without either."""
        return find_output(self.outputs, which if which is not None else index, tensor_name, "Output")

    def get_output_size(self):
        """Number of outputs."""
        return len(self._open()._results)

    def get_output_op(self, index):
        """Result of an output."""
        return self._open()._results[index]

    def get_output_element_type(self, index):
        """Element type of an output."""
        return self.get_output_op(index).get_output_element_type(0)

    def get_output_partial_shape(self, index):
        """Shape of an output as far as it is known."""
        return self.get_output_op(index).get_output_partial_shape(0)

    def get_output_shape(self, index):
        """Shape of an output, when all of it is known."""
        return self.get_output_op(index).get_output_shape(0)

    def get_parameter_index(self, parameter):
        """Position of a parameter; -1 where it is of another model."""
        return position(self._open()._parameters, lambda p: p is parameter)

    def get_result_index(self, value):
        """Position of a result, or of the one that a value goes to; -1 where there is none."""
        if isinstance(value, Node):
            return position(self._open()._results, lambda r: r is value)
        key = (value.get_node(), value.get_index())
        return position(self._open()._results, lambda r: r._inputs[0] == key or (r, 0) == key)

    def get_sink_index(self, sink):
        """Position of a sink; -1 where it is none of the model."""
        if not isinstance(sink, Node) and not hasattr(sink, "get_node"):
            raise TypeError("Incorrect argument type. Sink node is expected as argument.")
        node = sink if isinstance(sink, Node) else sink.get_node()
        return position(self._open()._sinks, lambda s: s is node)

    def get_variable_by_id(self, variable_id):
        """The variable of this id, or nothing."""
        return next((v for v in self._open()._variables if v.info.variable_id == variable_id), None)

    # Nodes.

    def get_ordered_ops(self):
        """All nodes, producers before readers."""
        self._open()
        order, done = [], set()
        stack = [*self._results, *self._sinks, *self._parameters]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            missing = [source for source, _ in node._inputs if id(source) not in done]
            if missing:
                stack += missing
                continue
            stack.pop()
            done.add(id(node))
            order.append(node)
        return order

    def get_ops(self):
        """All nodes."""
        return self.get_ordered_ops()

    def is_dynamic(self):
        """Whether a shape in the model is not known."""
        return any(f.partial_shape.is_dynamic for n in self.get_ordered_ops() for f in n._facts)

    @property
    def dynamic(self):
        """Whether a shape in the model is not known."""
        return self.is_dynamic()

    # Edits.

    def _edit(self, kind, items):
        getattr(self._open(), kind).extend(items)
        touch()

    def _remove(self, kind, item):
        kept = [x for x in getattr(self._open(), kind) if x is not item]
        if len(kept) == len(getattr(self, kind)):
            raise RuntimeError(f"{item!r} is not of this model")
        setattr(self, kind, kept)
        touch()

    def add_parameters(self, parameters):
        """Adds inputs."""
        self._edit("_parameters", parameters)
        self._name_ends()

    def add_results(self, results):
        """Adds outputs."""
        self._edit("_results", results)
        self._name_ends()

    def add_sinks(self, sinks):
        """Adds nodes that must run although nothing reads them."""
        self._edit("_sinks", [s.get_node() if isinstance(s, Output) else s for s in sinks])
        self._collect_variables()

    def add_variables(self, variables):
        """Adds variables."""
        self._edit("_variables", variables)

    def remove_parameter(self, parameter):
        """Takes an input out."""
        self._remove("_parameters", parameter)

    def remove_result(self, result):
        """Takes an output out."""
        self._remove("_results", result)

    def remove_sink(self, sink):
        """Takes a sink out."""
        self._remove("_sinks", sink if isinstance(sink, Node) else sink.get_node())

    def remove_variable(self, variable):
        """Takes a variable out."""
        self._remove("_variables", variable)

    def replace_parameter(self, parameter_index, parameter):
        """Another parameter in place of one; readers read the new one."""
        old = self._open()._parameters[parameter_index]
        for target in old._targets(0):
            target._node._connect(target._index, parameter, 0)
        self._parameters[parameter_index] = parameter
        touch()

    def add_outputs(self, outputs):
        """Makes values outputs of the model: by tensor name, by (friendly name, port), or as they are."""
        return add_outputs(self._open(), outputs)

    def reshape(self, partial_shape=None, variables_shapes=None, *, partial_shapes=None):
        """Gives inputs new shapes; all others follow."""
        wanted = partial_shapes if partial_shapes is not None else partial_shape
        shapes, chosen = reshape_wishes(self, wanted), variable_wishes(self, variables_shapes)
        before = [(p, p._op, p._facts) for p in self._parameters]
        variables = {v: v.info for v in self._variables}
        try:
            for parameter, shape in shapes:
                parameter.set_partial_shape(shape)
            for variable, shape in chosen:
                variable.update_data_shape(shape)
            self.validate_nodes_and_infer_types()
        except Exception:
            for parameter, op, facts in before:
                parameter._op, parameter._facts = op, facts
            for variable, info in variables.items():
                variable.update(info)
            self.validate_nodes_and_infer_types()
            raise

    def validate_nodes_and_infer_types(self):
        """Infers types and shapes of all nodes again."""
        known = {id(p) for p in self._open()._parameters}
        for node in self.get_ordered_ops():
            if isinstance(node, Parameter) and id(node) not in known:
                raise RuntimeError(f"Model references undeclared parameters: {node!r}")
            node.validate_and_infer_types()
        self._collect_variables()
        touch()

    def clone(self):
        """A copy with nodes of its own."""
        if not self._dead and not self._expanded:
            return Model._of_engine(self._native)
        copies = {}
        for node in self.get_ordered_ops():
            copies[node] = copy = node._copy([(copies[source], port) for source, port in node._inputs])
            copy._copy_marks(node)
        shared = {}
        for node in copies.values():
            variable = getattr(node, "_variable", None)
            if variable is not None:
                name = variable.info.variable_id
                node._variable = shared.setdefault(name, Variable(variable.info))
        ends = ([copies[n] for n in nodes] for nodes in (self._parameters, self._results, self._sinks))
        model = Model._of_nodes(*ends, [shared.get(v.info.variable_id, v) for v in self._variables])
        model._friendly, model._rt = self.friendly_name, RTMap(plain(self._rt))
        return model

    # Running.

    def evaluate(self, output_tensors, input_tensors, evaluation_context=None):
        """Runs the model by the reference evaluation, into these tensors."""
        try:
            results = self._engine().evaluate(list(input_tensors))
        except RuntimeError as error:
            raise RuntimeError(f"Cannot evaluate model! {error}") from None
        engine.fill(output_tensors, results)
        return True

    # Runtime information.

    def get_rt_info(self, path=None):
        """Runtime information of the model, or the entry at a path."""
        if path is None:
            return self._rt
        try:
            found = walk(self._rt, [path] if isinstance(path, str) else path)
            return found if isinstance(found, OVAny) else OVAny(found)
        except (KeyError, TypeError, IndexError):
            raise RuntimeError("Cannot get runtime attribute. Path to runtime attribute is incorrect.") from None

    def has_rt_info(self, path):
        """Whether there is an entry at a path."""
        try:
            walk(self._rt, [path] if isinstance(path, str) else path)
            return True
        except (KeyError, TypeError, IndexError):
            return False

    def set_rt_info(self, obj, path):
        """Sets the entry at a path."""
        self._open()
        *above, last = [path] if isinstance(path, str) else path
        items = plain(self._rt)
        level = items
        for key in above:
            if not isinstance(level.get(key), dict):
                level[key] = {}
            level = level[key]
        level[last] = plain(obj)
        self._rt._items = RTMap(items)._items
        touch()

    rt_info = property(get_rt_info)

    # As an object.

    def _get_raw_address(self):
        return id(self)

    def __copy__(self):
        raise TypeError("Cannot copy 'openvino.Model'. Please, use deepcopy instead.")

    def __deepcopy__(self, memo):
        return self.clone()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.__dict__ = {"_dead": True, "_number": self._number}

    def __getattr__(self, name):
        raise AttributeError(f"'openvino._pyopenvino.Model' object has no attribute '{name}' or attribute is no longer accessible.")

    def __repr__(self):
        inputs, outputs = (",\n".join(f"<Const{repr(o)[1:]}" for o in ports) for ports in (self.inputs, self.outputs))
        return f"<Model: '{self.friendly_name}'\ninputs[\n{inputs}\n]\noutputs[\n{outputs}\n]>"


copyreg.pickle(Model, _pickling.reduce_model)
