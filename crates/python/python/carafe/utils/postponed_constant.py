"""Constants that are made when they are needed."""

import math

from .._graph import engine
from .._graph.custom import Op
from .._values import Shape


class PostponedConstant(Op):
    """Stands for a constant that a function makes when the model goes to the engine."""

    _postponed = True

    def __init__(self, element_type, shape, maker, name=None):
        super().__init__(self)
        self.get_rt_info()["postponed_constant"] = True
        self._kind, self._shape, self._maker = element_type, shape, maker
        if name is not None:
            self.friendly_name = name
        self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self):
        """Type and shape as they were announced."""
        self.set_output_type(0, self._kind, engine.PartialShape(self._shape))

    def clone_with_new_inputs(self, new_inputs):
        """Another one with the same maker."""
        return PostponedConstant(self._kind, self._shape, self._maker, self.friendly_name)

    def has_evaluate(self):
        """It gives what the maker makes."""
        return True

    def evaluate(self, output_values, input_values, evaluation_context=None):
        """What the maker makes."""
        output_values[0] = self._maker()
        return True

    def _engine_op(self):
        tensor = self._maker()
        if tensor.element_type != self._kind or tensor.size != math.prod(self._shape):
            raise RuntimeError(
                f"postponed constant '{self.friendly_name}' was announced as {self._kind} {list(self._shape)}, "
                f"its maker gave {tensor.element_type} {list(tensor.shape)}"
            )
        if list(tensor.shape) != list(self._shape):
            tensor = engine.Tensor(tensor.data, Shape(self._shape), self._kind)
        return engine.GraphOp.constant(tensor)


def make_postponed_constant(element_type, shape, maker, name=None):
    """A node that stands for the tensor that `maker()` gives."""
    return PostponedConstant(element_type, shape, maker, name)
