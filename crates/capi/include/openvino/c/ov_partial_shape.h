/* Shapes with open sizes. */
#pragma once

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_dimension.h"
#include "openvino/c/ov_layout.h"
#include "openvino/c/ov_rank.h"
#include "openvino/c/ov_shape.h"

typedef struct ov_partial_shape {
    ov_rank_t rank;
    ov_dimension_t* dims;
} ov_partial_shape_t;

/* Of a known rank. */
OPENVINO_C_API(ov_status_e) ov_partial_shape_create(const int64_t rank, const ov_dimension_t* dims, ov_partial_shape_t* partial_shape_obj);
/* Of any rank; an open one has no dims. */
OPENVINO_C_API(ov_status_e) ov_partial_shape_create_dynamic(const ov_rank_t rank, const ov_dimension_t* dims,
                                ov_partial_shape_t* partial_shape_obj);
/* Of known sizes. */
OPENVINO_C_API(ov_status_e) ov_partial_shape_create_static(const int64_t rank, const int64_t* dims, ov_partial_shape_t* partial_shape_obj);
/* Frees the array. */
OPENVINO_C_API(void) ov_partial_shape_free(ov_partial_shape_t* partial_shape);
/* A shape; PARAMETER_MISMATCH where a size is open. */
OPENVINO_C_API(ov_status_e) ov_partial_shape_to_shape(const ov_partial_shape_t partial_shape, ov_shape_t* shape);
/* A partial shape of a shape. */
OPENVINO_C_API(ov_status_e) ov_shape_to_partial_shape(const ov_shape_t shape, ov_partial_shape_t* partial_shape);
/* Whether anything is open. */
OPENVINO_C_API(bool) ov_partial_shape_is_dynamic(const ov_partial_shape_t partial_shape);
/* Such as {1,?,3..5}; to be freed with ov_free. */
OPENVINO_C_API(const char*) ov_partial_shape_to_string(const ov_partial_shape_t partial_shape);
