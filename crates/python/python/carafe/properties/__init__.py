"""Properties of devices and compiled models. `cache_dir` is the key, `cache_dir("folder")` the key with a value."""

from carafe._enums import enumeration as _enumeration
from carafe._native import Type as _Type
from carafe.properties._property import Property as _Property
from carafe.properties._property import anything as _anything
from carafe.properties._property import flag as _flag
from carafe.properties._property import integer as _integer
from carafe.properties._property import of as _of
from carafe.properties._property import text as _text

CacheMode = _enumeration("CacheMode", {"OPTIMIZE_SIZE": 0, "OPTIMIZE_SPEED": 1}, __name__)
CompatibilityCheck = _enumeration(
    "CompatibilityCheck", {"NOT_APPLICABLE": 0, "SUPPORTED": 1, "UNSUPPORTED": 2}, __name__
)
WorkloadType = _enumeration("WorkloadType", {"DEFAULT": 0, "EFFICIENT": 1}, __name__)

available_devices = _Property("AVAILABLE_DEVICES")
compatibility_check = _Property("COMPATIBILITY_CHECK")
execution_devices = _Property("EXECUTION_DEVICES")
loaded_from_cache = _Property("LOADED_FROM_CACHE")
max_batch_size = _Property("MAX_BATCH_SIZE")
model_name = _Property("NETWORK_NAME")
optimal_batch_size = _Property("OPTIMAL_BATCH_SIZE")
optimal_number_of_infer_requests = _Property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
range_for_async_infer_requests = _Property("RANGE_FOR_ASYNC_INFER_REQUESTS")
range_for_streams = _Property("RANGE_FOR_STREAMS")
runtime_requirements = _Property("RUNTIME_REQUIREMENTS")
supported_properties = _Property("SUPPORTED_PROPERTIES")

auto_batch_timeout = _Property("AUTO_BATCH_TIMEOUT", _integer)
cache_dir = _Property("CACHE_DIR", _text)
cache_encryption_callbacks = _Property("CACHE_ENCRYPTION_CALLBACKS", _anything)
cache_mode = _Property("CACHE_MODE", _of(CacheMode))
compilation_num_threads = _Property("COMPILATION_NUM_THREADS", _integer)
enable_mmap = _Property("ENABLE_MMAP", _flag)
enable_profiling = _Property("PERF_COUNT", _flag)
enable_weightless = _Property("ENABLE_WEIGHTLESS", _flag)
force_tbb_terminate = _Property("FORCE_TBB_TERMINATE", _flag)
inference_num_threads = _Property("INFERENCE_NUM_THREADS", _integer)
key_cache_group_size = _Property("KEY_CACHE_GROUP_SIZE", _integer)
key_cache_precision = _Property("KEY_CACHE_PRECISION", _of(_Type))
value_cache_group_size = _Property("VALUE_CACHE_GROUP_SIZE", _integer)
value_cache_precision = _Property("VALUE_CACHE_PRECISION", _of(_Type))
weights_path = _Property("WEIGHTS_PATH", _text)
workload_type = _Property("WORKLOAD_TYPE", _of(WorkloadType))

from carafe.properties import device, hint, intel_auto, intel_cpu, intel_gpu, intel_npu, log, streams  # noqa: E402
