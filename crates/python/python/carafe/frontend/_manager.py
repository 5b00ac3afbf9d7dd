"""Reading a model step by step: a front end for each format, the model as it was loaded, and its conversion."""

import io
import os

from carafe import _native
from carafe._graph.model import Model
from carafe.frontend._failures import InitializationFailure, NotImplementedFailure

# Names of front ends, and the formats that they read.
_FORMATS = {
    "onnx": "ONNX",
    "tf": "TensorFlow",
    "tflite": "TensorFlow Lite",
    "paddle": "PaddlePaddle",
    "caffe": "Caffe",
    "mxnet": "MXNet",
    "kaldi": "Kaldi",
    "ir": "OpenVINO IR",
}
_ALSO = {"tensorflow": "tf", "tensorflow_lite": "tflite", "openvino": "ir"}


class Place:
    """An input or output of a model that was loaded."""

    def __init__(self, port, is_input):
        self._port, self._is_input = port, is_input

    def get_names(self):
        """Names of the tensor."""
        return sorted(self._port.get_names())

    def is_input(self):
        """Whether it is an input of the model."""
        return self._is_input

    def is_output(self):
        """Whether it is an output of the model."""
        return not self._is_input

    def is_equal(self, other):
        """Whether it is the same place."""
        return isinstance(other, Place) and self.get_names() == other.get_names() and self._is_input == other._is_input

    def __getattr__(self, name):
        raise NotImplementedFailure(f"Place.{name} is not implemented by Carafe")


class InputModel:
    """A model as it was loaded; it is converted when somebody looks into it."""

    def __init__(self, front_end, source):
        self._front_end, self._source, self._model, self._shapes = front_end, source, None, {}

    def _convert(self, how="whole"):
        if how != "whole":
            return self._front_end._read(self._source, how)
        if self._model is None:
            self._model = self._front_end._read(self._source, how)
        model = self._model.clone()
        if self._shapes:
            model.reshape(dict(self._shapes))
        return model

    def get_inputs(self):
        """Inputs, in order."""
        return [Place(port, True) for port in self._convert().inputs]

    def get_outputs(self):
        """Outputs, in order."""
        return [Place(port, False) for port in self._convert().outputs]

    def get_place_by_tensor_name(self, tensor_name):
        """The input or output of this name; `None` where there is none."""
        places = self.get_inputs() + self.get_outputs()
        return next((place for place in places if tensor_name in place.get_names()), None)

    def get_partial_shape(self, place):
        """Shape of an input or output."""
        return place._port.get_partial_shape()

    def get_element_type(self, place):
        """Element type of an input or output."""
        return place._port.get_element_type()

    def set_partial_shape(self, place, shape):
        """Gives an input another shape."""
        self._shapes[place.get_names()[0]] = shape

    def __getattr__(self, name):
        raise NotImplementedFailure(f"InputModel.{name} is not implemented by Carafe; convert the model and edit it as a Model")


class FrontEnd:
    """Reads models of one format."""

    def __init__(self, other):
        import carafe

        self._name = other._name if isinstance(other, FrontEnd) else other
        self._core = other._core if isinstance(other, FrontEnd) else carafe.Core()

    def __repr__(self):
        return f"<FrontEnd '{self._name}'>"

    def get_name(self):
        """Name of the front end."""
        return self._name

    def add_extension(self, extension):
        """Adds what `Core.add_extension` takes."""
        self._core.add_extension(extension)

    def supported(self, path):
        """Whether it reads the file."""
        try:
            return _native.format_of(self._core, os.fspath(path)) == _FORMATS[self._name]
        except RuntimeError:
            return False

    def load(self, path):
        """A model of a path, of bytes or of a stream."""
        if isinstance(path, io.IOBase):
            path.seek(0)
            return InputModel(self, path.read())
        if not isinstance(path, bytes):
            path = os.fspath(path)
            found = _native.format_of(self._core, path)
            if found != _FORMATS[self._name]:
                raise InitializationFailure(f"front end {self._name}: {path} is a model of {found}")
        return InputModel(self, path)

    def _read(self, source, how):
        return Model._of_engine(_native.read_with(self._core, source, how))

    def convert(self, model):
        """All of the model."""
        if isinstance(model, InputModel):
            return model._convert()
        raise NotImplementedFailure("FrontEnd.convert of a Model that was converted in part is not implemented by Carafe")

    def convert_partially(self, model):
        """The model, with nodes that no rule knows kept as they are."""
        return model._convert("partial")

    def decode(self, model):
        """The nodes of the file, none converted."""
        return model._convert("decoded")

    def normalize(self, model):
        """Nothing is left to be done: models are converted whole."""


class FrontEndManager:
    """Knows the front ends."""

    def get_available_front_ends(self):
        """Names of the front ends."""
        return sorted(_FORMATS)

    def load_by_framework(self, framework):
        """The front end of a name."""
        name = _ALSO.get(framework, framework)
        if name not in _FORMATS:
            known = ", ".join(self.get_available_front_ends())
            raise InitializationFailure(f"there is no front end '{framework}'; there are {known}")
        return FrontEnd(name)

    def load_by_model(self, model):
        """The front end that reads a file; `None` where none does."""
        if not os.path.exists(model):
            raise InitializationFailure(f'Could not open the file: "{os.fspath(model)}"')
        return next((end for end in map(FrontEnd, _FORMATS) if end.supported(model)), None)

    def register_front_end(self, name, library_path):
        """Formats of libraries are added as extensions."""
        raise NotImplementedFailure("FrontEndManager.register_front_end is not implemented by Carafe")
