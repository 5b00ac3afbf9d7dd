/* Inputs and outputs of models. */
#pragma once

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_partial_shape.h"
#include "openvino/c/ov_shape.h"

typedef struct ov_output_const_port ov_output_const_port_t;
typedef struct ov_output_port ov_output_port_t;

/* The shape; an open size is an error. */
OPENVINO_C_API(ov_status_e) ov_const_port_get_shape(const ov_output_const_port_t* port, ov_shape_t* tensor_shape);
/* The shape; an open size is an error. */
OPENVINO_C_API(ov_status_e) ov_port_get_shape(const ov_output_port_t* port, ov_shape_t* tensor_shape);
/* A name of the tensor, to be freed with ov_free. */
OPENVINO_C_API(ov_status_e) ov_port_get_any_name(const ov_output_const_port_t* port, char** tensor_name);
/* The shape with its open sizes. */
OPENVINO_C_API(ov_status_e) ov_port_get_partial_shape(const ov_output_const_port_t* port, ov_partial_shape_t* partial_shape);
/* The element type. */
OPENVINO_C_API(ov_status_e) ov_port_get_element_type(const ov_output_const_port_t* port, ov_element_type_e* tensor_type);
/* Frees the handle. */
OPENVINO_C_API(void) ov_output_port_free(ov_output_port_t* port);
/* Frees the handle. */
OPENVINO_C_API(void) ov_output_const_port_free(ov_output_const_port_t* port);
