"""Hints for OpenVINO's GPU device."""

from carafe.properties._property import Property as _Property
from carafe.properties._property import flag as _flag
from carafe.properties._property import integer as _integer
from carafe.properties._property import of as _of
from carafe.properties.hint import Priority as _Priority


class ThrottleLevel:
    """How much the queue of a GPU may be slowed down."""

    LOW = _Priority.LOW
    MEDIUM = _Priority.MEDIUM
    HIGH = _Priority.HIGH
    DEFAULT = _Priority.DEFAULT


available_device_mem = _Property("AVAILABLE_DEVICE_MEM_SIZE", _integer)
enable_large_allocations = _Property("GPU_ENABLE_LARGE_ALLOCATIONS", _flag)
enable_lora_operation = _Property("GPU_ENABLE_LORA_OPERATION", _flag)
host_task_priority = _Property("GPU_HOST_TASK_PRIORITY", _of(_Priority))
queue_priority = _Property("GPU_QUEUE_PRIORITY", _of(_Priority))
queue_throttle = _Property("GPU_QUEUE_THROTTLE", _of(_Priority))
