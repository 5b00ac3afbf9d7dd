/* What the axes of a tensor are: NCHW, N...C. */
#pragma once

#include "openvino/c/ov_common.h"

typedef struct ov_layout ov_layout_t;

/* Reads a layout. */
OPENVINO_C_API(ov_status_e) ov_layout_create(const char* layout_desc, ov_layout_t** layout);
/* Frees it. */
OPENVINO_C_API(void) ov_layout_free(ov_layout_t* layout);
/* Such as [N,C,H,W]; to be freed with ov_free. */
OPENVINO_C_API(const char*) ov_layout_to_string(const ov_layout_t* layout);
