"""Properties of AUTO and MULTI."""

from carafe._enums import enumeration as _enumeration
from carafe.properties._property import Property as _Property
from carafe.properties._property import flag as _flag
from carafe.properties._property import of as _of
from carafe.properties._property import text as _text
from carafe.properties._property import wrong as _wrong

SchedulePolicy = _enumeration(
    "SchedulePolicy", {"ROUND_ROBIN": 0, "DEVICE_PRIORITY": 1}, __name__, {"DEFAULT": "DEVICE_PRIORITY"}
)


def _thresholds(value):
    if not isinstance(value, dict):
        raise _wrong
    for name, percent in value.items():
        if not isinstance(name, str) or not hasattr(percent, "__index__"):
            raise _wrong
    return value


def curves_of(text):
    """The curves that a text such as `{CPU:{0:0,100:100}}` says."""
    import re

    text = text.replace(" ", "")
    whole = re.fullmatch(r"\{(?:[^{}:]+:\{[^{}]*\},?)*\}", text)
    if not whole:
        raise RuntimeError(f"`{text}` is no table of curves; expected such as {{CPU:{{0:0,100:100}}}}")
    found = {}
    for name, points in re.findall(r"([^{},:]+):\{([^{}]*)\}", text):
        pairs = [point.split(":") for point in points.split(",") if point]
        found[name] = {int(load): float(score) for load, score in pairs}
    return found


def _curves(value):
    if isinstance(value, str):
        return curves_of(value)
    if not isinstance(value, dict):
        raise _wrong
    made = {}
    for name, points in value.items():
        if not isinstance(name, str) or not isinstance(points, dict):
            raise _wrong
        for load, score in points.items():
            if not hasattr(load, "__index__") or not hasattr(score, "__float__"):
                raise _wrong
        made[name] = {load.__index__(): float(score) for load, score in points.items()}
    return made


device_bind_buffer = _Property("DEVICE_BIND_BUFFER", _flag)
devices_utilization_threshold = _Property("DEVICES_UTILIZATION_THRESHOLD", _thresholds)
enable_runtime_fallback = _Property("ENABLE_RUNTIME_FALLBACK", _flag)
enable_startup_fallback = _Property("ENABLE_STARTUP_FALLBACK", _flag)
low_power_device = _Property("LOW_POWER_DEVICE", _text)
perf_curve_table = _Property("PERF_CURVE_TABLE", _curves)
schedule_policy = _Property("SCHEDULE_POLICY", _of(SchedulePolicy))
