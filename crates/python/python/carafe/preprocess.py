"""Steps between what a program has and what a model takes."""

import re as _re

from carafe import _native
from carafe._enums import enumeration as _enumeration
from carafe._native import (
    InputInfo,
    InputModelInfo,
    InputTensorInfo,
    OutputInfo,
    OutputModelInfo,
    OutputTensorInfo,
    PostProcessSteps,
    PreProcessSteps,
)

ResizeAlgorithm = _enumeration(
    "ResizeAlgorithm",
    {
        "RESIZE_LINEAR": 0,
        "RESIZE_CUBIC": 1,
        "RESIZE_NEAREST": 2,
        "RESIZE_BILINEAR_PILLOW": 3,
        "RESIZE_BICUBIC_PILLOW": 4,
    },
    __name__,
)
ColorFormat = _enumeration(
    "ColorFormat",
    {
        "UNDEFINED": 0,
        "NV12_SINGLE_PLANE": 1,
        "NV12_TWO_PLANES": 2,
        "I420_SINGLE_PLANE": 3,
        "I420_THREE_PLANES": 4,
        "RGB": 5,
        "BGR": 6,
        "GRAY": 7,
        "RGBX": 8,
        "BGRX": 9,
    },
    __name__,
)
PaddingMode = _enumeration("PaddingMode", {"CONSTANT": 0, "EDGE": 1, "REFLECT": 2, "SYMMETRIC": 3}, __name__)

# Failures of the engine in the words that programs look for.
_WORDS = [
    (r"colours cannot be converted from (\w+) to (\w+)", r"color format '\1' is not convertible to '\2'"),
    (r"the steps make (\[.*?\]), the model takes (\[.*\])", r"resulting shape \1 is not aligned with original parameter's shape: \2"),
    (
        r"an axis of (\d+) cannot be cropped by (-?\d+) and (-?\d+)",
        r"an axis of \1, cropped by \2 and \3, is not aligned with original parameter's shape",
    ),
    (r"pads are given for (\d+) axes, the data has (\d+)", r"the length \1 of pads mismatches with rank of input \2"),
]


class PrePostProcessor(_native.PrePostProcessor):
    """Adds steps before the inputs and behind the outputs of a model."""

    def __init__(self, model):
        self._model = model

    def build(self):
        """The model with everything in it; it is the one that was given."""
        try:
            built = super().build()
        except RuntimeError as error:
            text = str(error)
            for ours, theirs in _WORDS:
                text = _re.sub(ours, theirs, text)
            raise RuntimeError(text) from None
        return self._model._become(built._engine())


__all__ = [
    "ColorFormat",
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
    "PaddingMode",
    "PostProcessSteps",
    "PrePostProcessor",
    "PreProcessSteps",
    "ResizeAlgorithm",
]
