"""Values of properties: typed in Python, texts in the engine."""

import os

from carafe._graph.rt_info import OVAny
from carafe._enums import Enumeration
from carafe._native import Type

# Keys whose text is a list.
_LISTS = {"AVAILABLE_DEVICES", "EXECUTION_DEVICES", "OPTIMIZATION_CAPABILITIES"}
# Keys whose text is a tuple of numbers.
_TUPLES = {"RANGE_FOR_ASYNC_INFER_REQUESTS", "RANGE_FOR_STREAMS"}
_TYPES = {"INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION", "KEY_CACHE_PRECISION", "VALUE_CACHE_PRECISION"}
_INTS = {
    "AUTO_BATCH_TIMEOUT",
    "COMPILATION_NUM_THREADS",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "INFERENCE_NUM_THREADS",
    "MAX_BATCH_SIZE",
    "NUM_STREAMS",
    "OPTIMAL_BATCH_SIZE",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "PERFORMANCE_HINT_NUM_REQUESTS",
}
_BOOLS = {"LOADED_FROM_CACHE"}


def _enums():
    from carafe.properties import CacheMode, WorkloadType, hint, intel_auto, log

    return {
        "CACHE_MODE": CacheMode,
        "EXECUTION_MODE_HINT": hint.ExecutionMode,
        "LOG_LEVEL": log.Level,
        "MODEL_PRIORITY": hint.Priority,
        "PERFORMANCE_HINT": hint.PerformanceMode,
        "SCHEDULE_POLICY": intel_auto.SchedulePolicy,
        "SCHEDULING_CORE_TYPE": hint.SchedulingCoreType,
        "WORKLOAD_TYPE": WorkloadType,
    }


def text_of(key, value):
    """The text that a value is in the engine."""
    if isinstance(value, OVAny):
        value = value.value
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, Type):
        return value.get_type_name()
    if isinstance(value, Enumeration):
        return "LOG_" + {"NO": "NONE", "ERR": "ERROR"}.get(value.name, value.name) if key == "LOG_LEVEL" else value.name
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):
        # A list of devices may end with its separator.
        return value.rstrip(",") if key == "MULTI_DEVICE_PRIORITIES" else value
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(text_of(key, item) for item in value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{text_of(k, v)}" for k, v in value.items()) + "}"
    if key == "NUM_STREAMS" and hasattr(value, "__index__"):
        return {-1: "AUTO", -2: "NUMA"}.get(value.__index__(), str(value.__index__()))
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if isinstance(value, float) or hasattr(value, "__float__"):
        return repr(float(value))
    raise TypeError(f"property {key} takes no value of {type(value)}")


def pairs(properties):
    """Keys and values of a dict, of a pair, or of several pairs."""
    if properties is None:
        return []
    if isinstance(properties, dict):
        items = properties.items()
    elif isinstance(properties, tuple) and len(properties) == 2 and isinstance(properties[0], str):
        items = [properties]
    else:
        try:
            items = dict(properties).items()
        except (TypeError, ValueError):
            raise TypeError(f"incompatible function arguments: properties are a dict or pairs, found {properties!r}") from None
    return [(str(key), value) for key, value in items]


def encode(properties):
    """Properties as texts. Those for one device of several stand under its name."""
    texts = {}
    for key, value in pairs(properties):
        plain = value.value if isinstance(value, OVAny) else value
        if key == "DEVICE_PROPERTIES" and isinstance(plain, dict):
            nested = (f"{name}:{{{_flat(inner)}}}" for name, inner in plain.items())
            texts[key] = "{" + ",".join(nested) + "}"
        else:
            texts[key] = text_of(key, value)
    return texts


def _flat(properties):
    return ",".join(f"{key}:{text}" for key, text in encode(properties).items())


def _bool(text):
    return text.strip().lower() in ("yes", "true", "1", "on")


def decode(key, text, kind):
    """The value that a text of the engine means; `kind` is what the table of the device says of it."""
    if key in _LISTS:
        return text.replace(",", " ").split()
    if key in _TUPLES:
        return tuple(int(part) for part in text.replace(",", " ").split())
    if key in _TYPES:
        known = {"FP32": "f32", "FP16": "f16", "BF16": "bf16", "undefined": "dynamic", "": "dynamic"}
        return Type(known.get(text, text))
    if kind == "bool" or key in _BOOLS:
        return _bool(text)
    if key == "NUM_STREAMS" and not text.lstrip("-").isdigit():
        return {"AUTO": -1, "NUMA": -2}.get(text, -1)
    if kind == "int" or key in _INTS:
        try:
            return int(text)
        except ValueError:
            return text
    found = _enums().get(key)
    if found is not None:
        name = text.strip().upper()
        if key == "LOG_LEVEL":
            name = {"LOG_NONE": "NO", "LOG_ERROR": "ERR"}.get(name, name.removeprefix("LOG_"))
        return found.__members__.get(name, text)
    return text
