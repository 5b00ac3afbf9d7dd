"""Properties of OpenVINO's own CPU device."""

from carafe._enums import enumeration as _enumeration
from carafe.properties._property import Property as _Property
from carafe.properties._property import flag as _flag
from carafe.properties._property import number as _number
from carafe.properties._property import of as _of

TbbPartitioner = _enumeration("TbbPartitioner", {"STATIC": 1, "AUTO": 2}, __name__)

denormals_optimization = _Property("CPU_DENORMALS_OPTIMIZATION", _flag)
sparse_weights_decompression_rate = _Property("CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", _number)
tbb_partitioner = _Property("TBB_PARTITIONER", _of(TbbPartitioner))
