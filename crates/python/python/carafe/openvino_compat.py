"""Lets programs that say ``import openvino`` run on Carafe, unchanged.

In a program, before anything imports openvino::

    import carafe.openvino_compat
    carafe.openvino_compat.install()

or from outside: ``python -m carafe.openvino_compat script.py arguments`` and ``python -m carafe.openvino_compat -m module``.

``openvino.runtime``, which the original dropped, is there too. What Carafe does not have raises NotImplementedError with its name.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types

VERSION = "2026.4.0"

# Modules of the original by the module of Carafe that has their names; others are looked for under the same name.
_TARGETS = {
    "openvino": "carafe",
    "openvino.runtime": "carafe",
    "openvino._pyopenvino": "carafe",
    "openvino._ov_api": "carafe",
    "openvino._op_base": "carafe",
    "openvino.tools": "carafe",
    "openvino.tools.ovc": "carafe",
}

# Names of the original that Carafe may lack. One that the original lacks too is an AttributeError, as there.
_KNOWN = {
    "carafe": (
        "AsyncInferQueue AxisSet AxisVector CompiledModel ConstOutput Coordinate CoordinateDiff Core Dimension DiscreteTypeInfo Extension "
        "InferRequest Input Layout Model Node OVAny Op OpExtension Output PartialShape ProfilingInfo RTMap RemoteContext RemoteTensor Shape "
        "Strides Symbol Tensor TensorVector Type VAContext VASurfaceTensor Version compile_model convert_model exceptions experimental "
        "frontend get_batch get_version helpers layout_helpers op package_utils passes preprocess properties save_model serialize set_batch "
        "shutdown tensor_from_file tools torch utils"
    ).split()
    + [f"opset{n}" for n in range(1, 18)],
    "carafe.frontend": (
        "FrontEndManager FrontEnd InputModel NodeContext Place DecoderTransformationExtension ConversionExtension OpExtension "
        "ProgressReporterExtension TelemetryExtension NotImplementedFailure InitializationFailure OpConversionFailure OpValidationFailure "
        "GeneralFailure pytorch jax"
    ).split(),
}
# Modules without a list of their own, in which every public name counts as one of the original.
_WHOLE = ("carafe.opset", "carafe.op", "carafe.passes", "carafe.preprocess", "carafe.properties", "carafe.utils", "carafe.helpers")


def _missing(name):
    return f"{name} of OpenVINO is not implemented by Carafe"


class MissingModule(ImportError, NotImplementedError):
    """A module of openvino that Carafe does not have."""


class _Alias(types.ModuleType):
    """A module under a name of the original, with the names of one of Carafe."""

    def __getattr__(self, name):
        target = self.__dict__["_carafe_target"]
        if name.startswith("__") and not hasattr(target, name):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        try:
            return getattr(target, name)
        except AttributeError:
            pass
        full = f"{self.__name__}.{name}"
        try:
            return importlib.import_module(full)
        except MissingModule:
            pass
        own = target.__name__
        known = name in _KNOWN.get(own, ()) or (own.startswith(_WHOLE) and not name.startswith("_"))
        if known:
            raise NotImplementedError(_missing(full))
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def __dir__(self):
        return sorted(set(dir(self.__dict__["_carafe_target"])) | set(self.__dict__))


def _target(name):
    """The module of Carafe that stands behind a module of openvino."""
    for prefix in ("openvino.runtime.", "openvino._pyopenvino.", "openvino."):
        if name in _TARGETS:
            return _TARGETS[name]
        if name.startswith(prefix):
            return "carafe." + name[len(prefix) :]
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds openvino and what is in it."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "openvino" and not fullname.startswith("openvino."):
            return None
        found = _target(fullname)
        try:
            importlib.import_module(found)
        except ModuleNotFoundError as error:
            if error.name is None or not found.startswith(error.name):
                raise
            raise MissingModule(_missing(f"module {fullname}"), name=fullname) from None
        return importlib.machinery.ModuleSpec(fullname, self, origin=f"{found} of Carafe", is_package=True)

    def create_module(self, spec):
        module = _Alias(spec.name, f"{spec.origin}, under the name of OpenVINO.")
        module.__dict__["_carafe_target"] = importlib.import_module(_target(spec.name))
        return module

    def exec_module(self, module):
        pass


class _Distribution(importlib.metadata.Distribution):
    """What the package index would know of openvino."""

    def read_text(self, filename):
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: openvino\nVersion: {VERSION}\nSummary: Carafe under the name of OpenVINO\n"
        return None

    def locate_file(self, path):
        return path


class _Distributions(importlib.metadata.DistributionFinder):
    """Answers for the distribution openvino, in front of one that is installed."""

    def find_spec(self, fullname, path=None, target=None):
        return None

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        if context.name is None or context.name.lower() == "openvino":
            yield _Distribution()


def install():
    """Makes ``import openvino`` mean Carafe, for the rest of the process. A second call changes nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("openvino")
    if loaded is not None:
        place = getattr(loaded, "__file__", None) or "an unknown place"
        raise RuntimeError(f"openvino is already imported, from {place}; install carafe.openvino_compat before that")
    sys.meta_path[:0] = [_Finder(), _Distributions()]


def main(arguments=None):
    """Runs a script or a module with openvino replaced."""
    import os
    import runpy

    arguments = sys.argv[1:] if arguments is None else list(arguments)
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not program or program[0] in ("-h", "--help"):
        print("usage: python -m carafe.openvino_compat SCRIPT.py [ARGUMENTS]\n       python -m carafe.openvino_compat -m MODULE [ARGUMENTS]")
        return 0 if program else 2
    install()
    sys.argv[:] = program
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    from carafe.openvino_compat import main as _main

    sys.exit(_main())
