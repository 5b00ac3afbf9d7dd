/* The number of axes, which may be open as a size may. */
#pragma once

#include "openvino/c/ov_dimension.h"

typedef ov_dimension_t ov_rank_t;

/* Whether the rank is open. */
OPENVINO_C_API(bool) ov_rank_is_dynamic(const ov_rank_t rank);
