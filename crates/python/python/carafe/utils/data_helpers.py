"""Results of inferences and tensors of files, where programs of OpenVINO look for them."""

from carafe._core import tensor_from_file
from carafe._ovdict import OVDict

__all__ = ["OVDict", "tensor_from_file"]
