"""Variables: memory that a model reads and assigns."""

from . import engine
from .clock import touch


class VariableInfo:
    """Id, element type and shape of a variable."""

    def __init__(self, variable_id="", data_type=None, data_shape=None):
        self.variable_id = variable_id
        self.data_type = data_type if data_type is not None else engine.Type("dynamic")
        self.data_shape = data_shape if data_shape is not None else engine.PartialShape.dynamic()

    def _copy(self):
        return VariableInfo(self.variable_id, self.data_type, self.data_shape)

    def __eq__(self, other):
        return isinstance(other, VariableInfo) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        return "<VariableInfo>"


class Variable:
    """A variable of a model."""

    def __init__(self, info):
        self._info = info._copy()

    def get_info(self):
        """Id, element type and shape."""
        return self._info._copy()

    def get_id(self):
        """Id."""
        return self._info.variable_id

    def update(self, info):
        """Sets id, element type and shape."""
        self._info = info._copy()
        touch()

    def update_data_shape(self, shape):
        """Sets the shape."""
        info = self._info._copy()
        info.data_shape = engine.PartialShape(shape)
        self.update(info)

    info = property(get_info)

    def __repr__(self):
        return f"<Variable: '{self._info.variable_id}'>"
