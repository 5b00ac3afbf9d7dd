"""Results of inferences, inputs as tensors and tensors of files, where programs of OpenVINO look for them."""

from carafe._core import tensor_from_file
from carafe._dispatch import data_dispatch as _data_dispatch
from carafe._native import OVDict

__all__ = ["OVDict", "_data_dispatch", "tensor_from_file"]
