"""Hints about what matters to a program."""

from carafe._enums import enumeration as _enumeration
from carafe._native import Type as _Type
from carafe.properties._property import Property as _Property
from carafe.properties._property import anything as _anything
from carafe.properties._property import flag as _flag
from carafe.properties._property import integer as _integer
from carafe.properties._property import number as _number
from carafe.properties._property import of as _of

ExecutionMode = _enumeration("ExecutionMode", {"PERFORMANCE": 1, "ACCURACY": 2}, __name__)
ModelDistributionPolicy = _enumeration(
    "ModelDistributionPolicy", {"TENSOR_PARALLEL": 0, "PIPELINE_PARALLEL": 1}, __name__
)
PerformanceMode = _enumeration(
    "PerformanceMode", {"LATENCY": 1, "THROUGHPUT": 2, "CUMULATIVE_THROUGHPUT": 3}, __name__
)
Priority = _enumeration("Priority", {"LOW": 0, "MEDIUM": 1, "HIGH": 2}, __name__, {"DEFAULT": "MEDIUM"})
SchedulingCoreType = _enumeration("SchedulingCoreType", {"ANY_CORE": 0, "PCORE_ONLY": 1, "ECORE_ONLY": 2}, __name__)

activations_scale_factor = _Property("ACTIVATIONS_SCALE_FACTOR", _number)
allow_auto_batching = _Property("ALLOW_AUTO_BATCHING", _flag)
compiled_blob = _Property("COMPILED_BLOB", _anything)
dynamic_quantization_group_size = _Property("DYNAMIC_QUANTIZATION_GROUP_SIZE", _integer)
enable_cpu_pinning = _Property("ENABLE_CPU_PINNING", _flag)
enable_cpu_reservation = _Property("ENABLE_CPU_RESERVATION", _flag)
enable_hyper_threading = _Property("ENABLE_HYPER_THREADING", _flag)
execution_mode = _Property("EXECUTION_MODE_HINT", _of(ExecutionMode))
inference_precision = _Property("INFERENCE_PRECISION_HINT", _of(_Type))
kv_cache_precision = _Property("KV_CACHE_PRECISION", _of(_Type))
model = _Property("MODEL_PTR", _anything)
model_distribution_policy = _Property("MODEL_DISTRIBUTION_POLICY", _of(set))
model_priority = _Property("MODEL_PRIORITY", _of(Priority))
num_requests = _Property("PERFORMANCE_HINT_NUM_REQUESTS", _integer)
performance_mode = _Property("PERFORMANCE_HINT", _of(PerformanceMode))
scheduling_core_type = _Property("SCHEDULING_CORE_TYPE", _of(SchedulingCoreType))
