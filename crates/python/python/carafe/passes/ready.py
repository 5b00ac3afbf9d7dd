"""Passes that are ready to be registered."""

import enum
import os

from .._graph import engine
from .manager import ModelPass


class Version(enum.IntEnum):
    """Versions of IR files."""

    UNSPECIFIED = 0
    IR_V10 = 10
    IR_V11 = 11


class Serialize(ModelPass):
    """Writes the model to files."""

    def __init__(self, path_to_xml, path_to_bin, version=None, **unknown):
        super().__init__()
        if unknown:
            raise TypeError(f"Serialize takes path_to_xml, path_to_bin and version. Invoked with: {sorted(unknown)}")
        if version is not None:
            version = getattr(version, "name", version)
            if version not in Version.__members__:
                raise RuntimeError(f"Invoked with wrong version argument: '{version}'")
        self._paths, self._version = (os.fspath(path_to_xml), os.fspath(path_to_bin)), version or "UNSPECIFIED"

    def run_on_model(self, model):
        """Writes the model; it stays as it is."""
        from carafe import serialize

        serialize(model, *self._paths, self._version)
        return False


class ConstantFolding(ModelPass):
    """Computes what depends on nothing that a caller gives."""

    def run_on_model(self, model):
        """Folds constants."""
        before = len(model.get_ordered_ops())
        model._take(engine.run_pass(model._engine(), "fold_constants"))
        return len(model.get_ordered_ops()) != before


class ConvertFP32ToFP16(ModelPass):
    """Lets a model compute in f16 where it computed in f32, inputs and outputs too."""

    def run_on_model(self, model):
        """Changes parameters, constants and attributes."""
        from .._graph.precision import convert

        return convert(model, engine.Type("f32"), engine.Type("f16"))


class MakeStateful(ModelPass):
    """Makes variables of pairs of inputs and outputs: what an output gives comes in again at the next inference."""

    def __init__(self, pairs):
        super().__init__()
        self._pairs = pairs

    def run_on_model(self, model):
        """Replaces the pairs."""
        from .._graph.stateful import make_stateful

        return make_stateful(model, self._pairs)


class LowLatency2(ModelPass):
    """Keeps what loops carry from step to step in variables, so that a sequence may be given step by step."""

    def __init__(self, use_const_initializer=True):
        super().__init__()
        self._use_const_initializer = use_const_initializer

    def run_on_model(self, model):
        """Adds variables to loops and iterators."""
        from .._graph.stateful import low_latency

        return low_latency(model, self._use_const_initializer)


class VisualizeTree(ModelPass):
    """Draws the model in the language of Graphviz; `nm(node, labels)` may add lines to the label of a node."""

    def __init__(self, file_name, nm=None, dot_only=False):
        super().__init__()
        self._path, self._label, self._dot_only = os.fspath(file_name), nm, dot_only

    def run_on_model(self, model):
        """Writes the picture."""
        path = self._path if self._path.endswith(".dot") else self._path + ".dot"
        lines = ["digraph model {"]
        for node in model.get_ordered_ops():
            labels = [f"{node.get_type_name()}", f"{node.friendly_name}"]
            labels += [f"{o.get_element_type().get_type_name()}{o.get_partial_shape()}" for o in node.outputs()]
            if self._label is not None:
                self._label(node, labels)
            text = "\\n".join(label.replace("\\", "\\\\").replace('"', '\\"') for label in labels)
            lines.append(f'  n{node.get_instance_id()} [shape=box label="{text}"];')
            for at, value in enumerate(node.input_values()):
                label = f"{value.get_index()} -> {at}"
                lines.append(
                    f'  n{value.get_node().get_instance_id()} -> n{node.get_instance_id()} [label="{label}"];'
                )
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, "}", ""]))
        return False
