"""Nodes by the name of their type."""

from .._graph import engine
from .._graph.factories import make_node
from .._graph.make import class_of
from .._graph.node import Node
from .._graph.ports import Output
from .._graph.type_info import DiscreteTypeInfo
from ..exceptions import UserInputError

DEFAULT_OPSET = "opset13"


class _Unfinished(Node):
    """A node that gets its arguments and attributes later."""

    def __init__(self, kind, opset):
        self._start()
        self._kind, self._opset, self._given = kind, opset, {}

    def get_type_info(self):
        """Type of the operation and the opset that it is of."""
        if self._op is not None:
            return super().get_type_info()
        return DiscreteTypeInfo(self._kind, self._opset)

    def get_attributes(self):
        """Attributes that were set so far, or all of a finished node."""
        return super().get_attributes() if self._op is not None else dict(self._given)

    def set_attribute(self, name, value):
        """Sets one attribute."""
        if self._op is not None:
            super().set_attribute(name, value)
        else:
            self._given[name] = value

    def _infer(self):
        if self._op is None:
            self._op = engine.create_op(self._kind, self._opset, self._given)
        super()._infer()


class NodeFactory:
    """Makes nodes of one opset by the names of their types."""

    def __init__(self, opset_version=DEFAULT_OPSET):
        self._opset = opset_version
        self._written = {}

    def create(self, op_type_name, arguments=None, attributes=None):
        """A node of this type; without arguments and attributes one that gets them later."""
        if arguments is None and attributes is not None:
            raise UserInputError(f'Error: cannot create "{op_type_name}" op without arguments.')
        if arguments is None:
            return _Unfinished(op_type_name, self._opset)
        outputs = self._arguments_as_outputs(arguments)
        if op_type_name in self._written:
            return self._written[op_type_name](outputs, **(attributes or {}))
        if op_type_name == "Parameter":
            return _Unfinished(op_type_name, self._opset)
        node = make_node(op_type_name, self._opset, outputs, attributes or {})
        kind = class_of(op_type_name)
        if kind is not Node:
            node.__class__ = kind
            if hasattr(node, "_restore"):
                node._restore(None)
        return node

    def add_extension(self, extension):
        """Lets the factory make operations of an extension."""
        for entry in extension if isinstance(extension, (list, tuple)) else [extension]:
            written = getattr(entry, "operation", entry)
            if isinstance(written, type) and hasattr(written, "get_type_info"):
                info = getattr(written, "class_type_info", None)
                self._written[info.name if info is not None else written.__name__] = written
            elif isinstance(entry, str) or hasattr(entry, "__fspath__"):
                raise NotImplementedError("NodeFactory.add_extension takes operations of Python, not libraries")

    @staticmethod
    def _arguments_as_outputs(arguments):
        outputs = []
        for argument in arguments:
            outputs += [argument] if isinstance(argument, Output) else argument.outputs()
        return outputs


def _get_node_factory(opset_version=None):
    return NodeFactory(opset_version or DEFAULT_OPSET)
