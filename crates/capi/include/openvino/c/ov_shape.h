/* Shapes whose sizes are all known. */
#pragma once

#include "openvino/c/ov_common.h"

typedef struct {
    int64_t rank;
    int64_t* dims;
} ov_shape_t;

/* Makes a shape; without dims the array is to be filled in. */
OPENVINO_C_API(ov_status_e) ov_shape_create(const int64_t rank, const int64_t* dims, ov_shape_t* shape);
/* Frees the array. */
OPENVINO_C_API(ov_status_e) ov_shape_free(ov_shape_t* shape);
