"""Properties of OpenVINO's NPU device."""

from carafe._enums import enumeration as _enumeration
from carafe.properties._property import Property as _Property
from carafe.properties._property import flag as _flag
from carafe.properties._property import integer as _integer
from carafe.properties._property import of as _of
from carafe.properties._property import text as _text

CompilerType = _enumeration("CompilerType", {"DRIVER": 0, "PLUGIN": 1, "PREFER_PLUGIN": 2}, __name__)

compiler_version = _Property("NPU_COMPILER_VERSION")
device_alloc_mem_size = _Property("NPU_DEVICE_ALLOC_MEM_SIZE")
device_total_mem_size = _Property("NPU_DEVICE_TOTAL_MEM_SIZE")
driver_version = _Property("NPU_DRIVER_VERSION")
max_tiles = _Property("NPU_MAX_TILES")

bypass_umd_caching = _Property("NPU_BYPASS_UMD_CACHING", _flag)
compilation_mode_params = _Property("NPU_COMPILATION_MODE_PARAMS", _text)
compiler_dynamic_quantization = _Property("NPU_COMPILER_DYNAMIC_QUANTIZATION", _flag)
compiler_type = _Property("NPU_COMPILER_TYPE", _of(CompilerType))
defer_weights_load = _Property("NPU_DEFER_WEIGHTS_LOAD", _flag)
disable_idle_memory_prunning = _Property("NPU_DISABLE_IDLE_MEMORY_PRUNING", _flag)
enable_strides_for = _Property("NPU_ENABLE_STRIDES_FOR", _text)
platform = _Property("NPU_PLATFORM", _text)
qdq_optimization = _Property("NPU_QDQ_OPTIMIZATION", _flag)
qdq_optimization_aggressive = _Property("NPU_QDQ_OPTIMIZATION_AGGRESSIVE", _flag)
run_inferences_sequentially = _Property("NPU_RUN_INFERENCES_SEQUENTIALLY", _flag)
tiles = _Property("NPU_TILES", _integer)
turbo = _Property("NPU_TURBO", _flag)
