"""Carafe runs trained models. The names are those of OpenVINO's Python API."""

import atexit as _atexit
import copyreg as _copyreg
import os as _os

from carafe import _native, _pickling
from carafe._core import (
    Core,
    Version,
    compile_model,
    convert_model,
    get_batch,
    save_model,
    serialize,
    set_batch,
    shutdown,
    tensor_from_file,
)
from carafe._native import (
    AsyncInferQueue,
    CompiledModel,
    ConstOutput,
    Dimension,
    InferRequest,
    Layout,
    PartialShape,
    ProfilingInfo,
    RemoteContext,
    RemoteTensor,
    Symbol,
    Tensor,
    Type,
    VariableState,
    get_version,
)
from carafe._ovdict import OVDict
from carafe._extensions import Extension, OpExtension
from carafe._graph.custom import AttributeVisitor, Op
from carafe._graph.model import Model
from carafe._graph.node import Node
from carafe._graph.ports import DescriptorTensor, Input, Output
from carafe._graph.rt_info import OVAny, RTMap
from carafe._graph.type_info import DiscreteTypeInfo
from carafe._values import AxisSet, AxisVector, Coordinate, CoordinateDiff, Shape, Strides, TensorVector
from carafe import _signatures, layout_helpers, preprocess, properties

__version__ = get_version()

# Modules that are only imported when somebody asks for them.
_LATER = {"op", "passes", "utils", "exceptions", "helpers", "experimental", "frontend", *(f"opset{n}" for n in range(1, 18))}


def __getattr__(name):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"carafe.{name}")
    raise AttributeError(f"module 'carafe' has no attribute '{name}'")


_copyreg.pickle(Model, _pickling.reduce_model)

# A request that still runs when the interpreter ends would call into one that is gone; threads of the
# engine do not come along into a fork.
_atexit.register(_native._stop_all)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(before=_native._before_fork, after_in_child=_native._forked)
