"""Properties of OpenVINO's GPU device."""

from carafe.properties._property import Property as _Property
from carafe.properties._property import flag as _flag
from carafe.properties._property import text as _text


class MemoryType:
    """Where a tensor of a GPU may lie."""

    surface = "GPU_SURFACE"
    buffer = "GPU_BUFFER"


class CapabilityGPU:
    """Words in the list of a GPU's capabilities."""

    HW_MATMUL = "GPU_HW_MATMUL"
    USM_MEMORY = "GPU_USM_MEMORY"


device_max_alloc_mem_size = _Property("GPU_DEVICE_MAX_ALLOC_MEM_SIZE")
device_total_mem_size = _Property("GPU_DEVICE_TOTAL_MEM_SIZE")
execution_units_count = _Property("GPU_EXECUTION_UNITS_COUNT")
memory_statistics = _Property("GPU_MEMORY_STATISTICS")
uarch_version = _Property("GPU_UARCH_VERSION")

config_file = _Property("CONFIG_FILE", _text)
disable_winograd_convolution = _Property("GPU_DISABLE_WINOGRAD_CONVOLUTION", _flag)
enable_loop_unrolling = _Property("GPU_ENABLE_LOOP_UNROLLING", _flag)

from carafe.properties.intel_gpu import hint  # noqa: E402
