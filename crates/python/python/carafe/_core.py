"""`Core`, with the forms of arguments that programs use, and the functions around it."""

import io
import os
import re

from carafe import _native, _pickling
from carafe._native import Dimension, PartialShape, Tensor
from carafe._property_values import decode, pairs, text_of


class Version:
    """The version of a device."""

    __slots__ = ("build_number", "description", "major", "minor", "patch")

    def __init__(self, build_number, description):
        self.build_number = build_number
        self.description = description
        numbers = [int(part) if part.isdigit() else 0 for part in build_number.split("-")[0].split(".")]
        self.major, self.minor, self.patch = (numbers + [0, 0, 0])[:3]

    def __repr__(self):
        return f"<Version: {self.build_number} {self.description}>"


# Properties of OpenVINO that mean nothing to this engine and that programs set all the same: their values are kept, so that they read back.
# Under the empty name those that belong to no device.
_INERT = {
    "": {"FORCE_TBB_TERMINATE": ("bool", "NO"), "ENABLE_MMAP": ("bool", "YES")},
    "*": {
        "COMPILATION_NUM_THREADS": ("int", "0"),
        "CPU_DENORMALS_OPTIMIZATION": ("bool", "NO"),
        "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": ("text", "1.0"),
        "ENABLE_CPU_RESERVATION": ("bool", "NO"),
        "ENABLE_HYPER_THREADING": ("bool", "YES"),
        "ENABLE_MMAP": ("bool", "YES"),
        "ENABLE_WEIGHTLESS": ("bool", "NO"),
        "LOG_LEVEL": ("enum", "LOG_NONE"),
        "MODEL_DISTRIBUTION_POLICY": ("set", ""),
        "MODEL_PRIORITY": ("enum", "MEDIUM"),
        "SCHEDULING_CORE_TYPE": ("enum", "ANY_CORE"),
        "TBB_PARTITIONER": ("text", "AUTO"),
    },
    "AUTO": {
        "DEVICE_BIND_BUFFER": ("bool", "NO"),
        "ENABLE_RUNTIME_FALLBACK": ("bool", "YES"),
        "ENABLE_STARTUP_FALLBACK": ("bool", "YES"),
        "LOW_POWER_DEVICE": ("text", ""),
        "PERF_CURVE_TABLE": ("curves", "{}"),
        "SCHEDULE_POLICY": ("enum", "DEVICE_PRIORITY"),
    },
}
_INERT["MULTI"] = _INERT["AUTO"]


def _device_of(name):
    return name.split(":")[0].split(".")[0]


def _curves(value):
    from carafe.properties.intel_auto import curves_of

    value = getattr(value, "value", value)
    table = curves_of(value) if isinstance(value, str) else value
    for name, points in table.items():
        if name.split(".")[0] not in ("CPU", "GPU", "NPU") or not points:
            raise RuntimeError(f"PERF_CURVE_TABLE has points for CPU, GPU and NPU, found `{name}`: {points}")
    return table


def _path(value, what):
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise TypeError(f"Provided python object type {type(value)} isn't supported as '{what}' argument.")


def _buffer(value):
    """Bytes of a stream, or the value itself."""
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "read"):
        return value.read()
    return value


def _looks_like_xml(model):
    return isinstance(model, str) and model.lstrip().startswith("<")


_CALLBACKS = "CACHE_ENCRYPTION_CALLBACKS"


class Core(_native._Core):
    """Reads models, makes them ready for devices, and holds what is registered."""

    def __new__(cls, xml_config_file=""):
        made = super().__new__(cls, xml_config_file)
        made._kept = {}
        # What was set, by device and name.
        made._settings = {}
        return made

    def read_model(self, model, weights=None, config=None):
        """A model of a file of any format, or of bytes with their weights."""
        if config:
            self._make_cache_folder(config)
        model, weights = _buffer(model), _buffer(weights)
        if isinstance(weights, (bytes, Tensor)) and not len(weights if isinstance(weights, bytes) else weights.shape):
            weights = None
        if _looks_like_xml(model):
            model = model.encode()
        if not isinstance(model, (bytes, Tensor)):
            model = _path(model, "model")
        if weights is not None and not isinstance(weights, (bytes, Tensor)):
            weights = _path(weights, "weights") or None
        read, files = self._read(model, weights)
        read._origin = _pickling.origin_of(model, weights, files, read._native)
        return read

    def _make_cache_folder(self, config):
        folder = dict(pairs(config)).get("CACHE_DIR")
        if folder:
            os.makedirs(text_of("CACHE_DIR", folder), exist_ok=True)

    def compile_model(self, model, device_name=None, config=None, *, weights=None):
        """A model, a file, or bytes with their weights, made ready for a device; without a name AUTO chooses one."""
        if isinstance(device_name, dict):
            device_name, config = None, device_name
        context = device_name if isinstance(device_name, _native.RemoteContext) else None
        device = context.get_device_name() if context else device_name or "AUTO"
        weights = _buffer(weights)
        if not hasattr(model, "_engine"):
            model = _buffer(model)
            if _looks_like_xml(model):
                model = model.encode()
            if not isinstance(model, (bytes, Tensor)):
                if not isinstance(model, (str, os.PathLike)) or not os.path.exists(model):
                    raise RuntimeError(
                        f"Path: '{model}' does not exist. Please provide valid model's path either as a string, bytes "
                        "or pathlib.Path"
                    )
                model = os.fspath(model)
        config, callbacks = self._without_callbacks(config)
        properties = self._for_compilation(device, config)
        if context:
            properties = {**context._for_compilation(), **properties}
        compiled, files = self._compile(model, weights, device, properties)
        if callbacks:
            compiled._encrypt = callbacks[0]
        if hasattr(model, "_engine"):
            origin = _pickling.unedited_origin(model)
        else:
            origin = _pickling.origin_of(model, weights, files)
        if origin is not None:
            set_before = {key: text for (name, key), text in self._settings.items() if name in ("", _device_of(device))}
            compiled._origin = origin.compiled({**set_before, **{key: text_of(key, value) for key, value in properties.items()}})
        return compiled

    def import_model(self, model_stream, device_name, config=None):
        """A compiled model of what `CompiledModel.export_model` wrote."""
        blob = _buffer(model_stream)
        if not isinstance(blob, (bytes, Tensor)):
            raise TypeError(f"Unsupported blob type: {type(model_stream)}; bytes, a stream or a Tensor are expected")
        config, callbacks = self._without_callbacks(config)
        decrypt = callbacks[1] if callbacks else None
        compiled = self._import(blob, device_name, self._for_compilation(device_name, config), decrypt)
        if callbacks:
            compiled._encrypt = callbacks[0]
        return compiled

    # Properties without the functions that encrypt and decrypt exports. The cache is written by the engine, which knows none.
    def _without_callbacks(self, config):
        rest = dict(pairs(config))
        callbacks = rest.pop(_CALLBACKS, None)
        if callbacks is None:
            return config, None
        if not isinstance(callbacks, (list, tuple)) or len(callbacks) != 2 or not all(map(callable, callbacks)):
            raise RuntimeError(f"{_CALLBACKS} is a list of two functions, one that encrypts bytes and one that decrypts them")
        if rest.get("CACHE_DIR") or self.get_property("CACHE_DIR"):
            raise RuntimeError(f"{_CALLBACKS}: files of CACHE_DIR are not encrypted; leave one of the two out")
        return rest, callbacks

    def query_model(self, model, device_name, config=None):
        """Names of the nodes that a device takes."""
        return self._query(model, device_name, self._for_compilation(device_name, config))

    def get_versions(self, device_name):
        """The versions of a device and of those that it is made of."""
        try:
            return {name: Version(build, text) for name, build, text in self._versions(device_name)}
        except RuntimeError as error:
            missing = re.search(r"library `([^`]*)`: there is no such file", str(error))
            if not missing:
                raise
            name = missing.group(1)
            name = name if name.endswith(".so") else f"lib{name}.so"
            raise RuntimeError(f'Cannot load library "{name}": {error}') from None

    def unload_plugin(self, device_name):
        """Lets go of the library of a device; one that is built in has none."""
        try:
            super().unload_plugin(device_name)
        except RuntimeError:
            if device_name not in {_device_of(name) for name in self.available_devices}:
                raise

    def add_extension(self, extension=None, *, library_path=None, extensions=None, custom_op=None):
        """Adds operations, rules, kernels or rewrites: a library, an extension, or a list of these."""
        given = next((v for v in (extension, library_path, extensions, custom_op) if v is not None), None)
        if isinstance(given, (str, os.PathLike)):
            try:
                self._add_library(given)
            except RuntimeError as error:
                raise RuntimeError(f'Cannot load library "{os.fspath(given)}": {error}') from None
            return
        if isinstance(given, (list, tuple)):
            for one in given:
                self.add_extension(one)
            return
        from carafe import _extensions

        _extensions.add(self, given)

    def set_property(self, *arguments, device_name=None, properties=None, property=None):
        """Sets properties of a device, or of all devices where none is named."""
        given = list(arguments)
        if given and isinstance(given[0], str) and device_name is None:
            device_name = given.pop(0)
        if properties is None:
            properties = property if property is not None else (given[0] if given else {})
        for key, value in pairs(properties):
            if device_name:
                self._set_one(device_name, key, value)
            else:
                self._set_everywhere(key, value)

    def _inert(self, device, key):
        if device and self._knows(device, key):
            return None
        rows = _INERT[""] if not device else {**_INERT["*"], **_INERT.get(_device_of(device), {})}
        return rows.get(key)

    def _set_one(self, device, key, value):
        inert = self._inert(device, key)
        if inert is None:
            self._set(device, {key: value})
            self._settings[_device_of(device), key] = text_of(key, value)
            return
        kept = getattr(value, "value", value) if inert[0] == "set" else None
        if kept is None:
            kept = _curves(value) if inert[0] == "curves" else text_of(key, value)
        self._kept[_device_of(device), key] = kept

    def _set_everywhere(self, key, value):
        if self._knows("", key):
            self._set("", {key: value})
            self._settings["", key] = text_of(key, value)
            return
        taken = key in _INERT[""]
        if taken:
            self._kept["", key] = text_of(key, value)
        for device in {_device_of(name) for name in self.available_devices}:
            if self._knows(device, key) or self._inert(device, key) is not None:
                self._set_one(device, key, value)
                taken = True
        if not taken:
            raise RuntimeError(f"no device has a property `{key}`")

    def get_property(self, device_name, property=None, arguments=None):
        """A property of a device, or of all where only its name is given."""
        if property is None:
            device_name, property = "", device_name
        key = str(property)
        if not device_name and key == "AVAILABLE_DEVICES":
            return self.available_devices
        inert = self._inert(device_name, key)
        if inert is None:
            return self._get(device_name, key)
        kind, default = inert
        kept = self._kept.get((_device_of(device_name), key), default)
        if kind == "curves":
            return kept if isinstance(kept, dict) else {}
        if kind == "set":
            return kept if isinstance(kept, set) else set()
        return decode(key, kept, kind)

    def _for_compilation(self, device, config):
        return {key: value for key, value in pairs(config) if self._inert(device, key) is None}


def compile_model(model, device_name="AUTO", config=None):
    """A model or file made ready for a device, with a `Core` of its own."""
    return Core().compile_model(model, device_name, config)


def _new_file(path):
    """A path as text; the folders above it are made."""
    path = os.fsdecode(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return path


def _as_files_have_it(model):
    from carafe._graph.rt_info import as_files_have_it

    return as_files_have_it(model)


def save_model(model, output_model, compress_to_fp16=True):
    """Writes a model as `.xml` and `.bin`, weights as f16 unless that is turned off."""
    with _as_files_have_it(model):
        _native._save(model, _new_file(output_model), bool(compress_to_fp16), True)


def serialize(model, xml_path, bin_path="", version="UNSPECIFIED"):
    """Writes a model as `.xml` and `.bin`, weights as they are."""
    if version not in ("UNSPECIFIED", "IR_V10", "IR_V11"):
        raise RuntimeError(f"IR version {version} cannot be written; supported: UNSPECIFIED, IR_V10, IR_V11")
    xml_path, bin_path = _new_file(xml_path), _new_file(bin_path) if bin_path else ""
    usual = os.path.splitext(xml_path)[0] + ".bin"
    if version != "IR_V10" and (not bin_path or os.path.abspath(bin_path) == os.path.abspath(usual)):
        with _as_files_have_it(model):
            _native._save(model, xml_path, False)
        return
    with _as_files_have_it(model):
        xml, weights = _native._to_ir(model)
    bin_path = bin_path or usual
    if version == "IR_V10":
        # The versions differ in nothing else that is written.
        xml = re.sub(rb'(<net\b[^>]*\bversion=)"11"', rb'\1"10"', bytes(xml), count=1)
    for path, content in ((xml_path, xml), (bin_path, weights)):
        with open(path, "wb") as file:
            file.write(content)


def _shape_text(shape):
    return str(PartialShape(shape))


def _input_text(inputs):
    """The option `--input` of `carafe convert` for what `convert_model` takes."""
    from carafe._native import Type

    if inputs is None or isinstance(inputs, str):
        return inputs
    named = inputs.items() if isinstance(inputs, dict) else [(None, item) for item in inputs]
    words = []
    for name, item in named:
        parts = item if isinstance(item, tuple) and not all(isinstance(n, int) for n in item) else (item,)
        shape, kind = "", ""
        for part in parts:
            if isinstance(part, str):
                name = part
            elif isinstance(part, type) or isinstance(part, Type) or hasattr(part, "itemsize"):
                kind = "{" + Type(part).get_type_name() + "}"
            else:
                shape = _shape_text(part)
        words.append(f"{name or ''}{shape}{kind}")
    return ",".join(words)


def convert_model(
    input_model,
    input=None,
    output=None,
    example_input=None,
    extension=None,
    verbose=False,
    share_weights=True,
    dynamo=False,
):
    """A model of a file of any framework, of bytes, or of an ONNX `ModelProto`, ready to be compiled or saved.

    Weights are shared with the file in any case. `example_input` and `dynamo` say how a program of PyTorch is traced, which is not done here.
    """
    for name, given in (("example_input", example_input is not None), ("dynamo", bool(dynamo))):
        if given:
            raise NotImplementedError(
                f"convert_model({name}=...) is not supported: models are read from files, not traced; export the model first "
                "(torch.onnx.export, tf.saved_model.save, model.export) and leave the argument out"
            )
    if hasattr(input_model, "_engine"):
        return input_model
    core = Core()
    for one in [] if extension is None else extension if isinstance(extension, list) else [extension]:
        core.add_extension(one)
    if isinstance(input_model, (list, tuple)) and input_model and all(isinstance(p, (str, os.PathLike)) for p in input_model):
        weights = os.fspath(input_model[1]) if len(input_model) > 1 else None
        source = os.fspath(input_model[0])
    else:
        source, weights = _buffer(input_model), None
    if hasattr(source, "SerializeToString"):
        source = source.SerializeToString()
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, (str, bytes)):
        raise NotImplementedError(
            f"objects of {type(input_model)} cannot be converted: export the model first (torch.onnx.export, "
            "tf.saved_model.save, model.export) and give convert_model the file"
        )
    outputs = output if output is None or isinstance(output, str) else ",".join(output)
    return _native._convert(core, source, weights, _input_text(input), outputs, bool(verbose))


def tensor_from_file(path):
    """A tensor with the bytes of a file."""
    import numpy as np

    return Tensor(np.fromfile(path, dtype=np.uint8))


def _batch_axis(parameter):
    from carafe import layout_helpers

    layout = layout_helpers.get_layout(parameter.output(0))
    if layout is None or layout.empty or not layout_helpers.has_batch(layout):
        return None
    return layout_helpers.batch_idx(layout)


def get_batch(model):
    """The batch that all inputs whose layout has one agree on."""
    found = None
    for parameter in model.get_parameters():
        axis = _batch_axis(parameter)
        if axis is None:
            continue
        dimension = parameter.get_output_partial_shape(0)[axis]
        if found is not None and not found.compatible(dimension):
            raise RuntimeError(f"inputs have different batches: {found} and {dimension}")
        found = dimension
    if found is None:
        raise RuntimeError("get_batch: no input has a layout with a batch; set one with layout_helpers.set_layout")
    return found


def set_batch(model, batch_size=-1, *, dimension=None):
    """Gives all inputs whose layout has a batch this one."""
    batch = dimension if dimension is not None else batch_size
    batch = batch if isinstance(batch, Dimension) else Dimension(batch)
    shapes = {}
    for parameter in model.get_parameters():
        axis = _batch_axis(parameter)
        if axis is not None:
            shape = PartialShape(parameter.get_output_partial_shape(0))
            shape[axis] = batch
            shapes[parameter.output(0)] = shape
    if not shapes:
        raise RuntimeError("set_batch: no input has a layout with a batch; set one with layout_helpers.set_layout")
    model.reshape(shapes)


def shutdown():
    """Ends what still runs."""
    _native._stop_all()
