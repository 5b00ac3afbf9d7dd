"""Steps between what a program has and what a model takes."""

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
    PrePostProcessor,
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
