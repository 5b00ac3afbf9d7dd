/* Sizes of one axis: exactly one, a range, or any (-1). */
#pragma once

#include "openvino/c/ov_common.h"

typedef struct ov_dimension {
    int64_t min;
    int64_t max;
} ov_dimension_t;

/* Whether the size is open. */
OPENVINO_C_API(bool) ov_dimension_is_dynamic(const ov_dimension_t dim);
