"""Carafe runs trained models. The names are those of OpenVINO's Python API."""

import atexit as _atexit
import os as _os

from carafe import _native
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
    OVDict,
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
from carafe import _signatures

__version__ = get_version()

# What is imported when somebody asks for it, so that a program that only infers starts fast: modules, and names by their module.
_MODULES = (
    "exceptions experimental frontend helpers layout_helpers op passes preprocess properties utils " + " ".join(f"opset{n}" for n in range(1, 18))
).split()
_NAMES = {
    "_extensions": "Extension OpExtension",
    "_graph.custom": "AttributeVisitor Op",
    "_graph.model": "Model",
    "_graph.node": "Node",
    "_graph.ports": "DescriptorTensor Input Output",
    "_graph.rt_info": "OVAny RTMap",
    "_graph.type_info": "DiscreteTypeInfo",
    "_values": "AxisSet AxisVector Coordinate CoordinateDiff Shape Strides TensorVector",
}
_LATER = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted({*(name for name in globals() if not name.startswith("_")), *_MODULES, *_LATER})


def __getattr__(name):
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"carafe.{name}")
    if name in _LATER:
        found = getattr(importlib.import_module(f"carafe.{_LATER[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'carafe' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__})


# A request that still runs when the interpreter ends would call into one that is gone; threads of the
# engine do not come along into a fork.
_atexit.register(_native._stop_all)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(before=_native._before_fork, after_in_child=_native._forked)
