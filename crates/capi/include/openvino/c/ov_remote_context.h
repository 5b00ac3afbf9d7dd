/* Memory of a device. GPU makes contexts and takes those of OpenCL, their queues and buffers; other devices, images and VA
 * answer NOT_IMPLEMENTED. */
#pragma once

#include "openvino/c/gpu/gpu_plugin_properties.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_shape.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_remote_context ov_remote_context_t;

/* A tensor on the device. */
OPENVINO_C_API(ov_status_e) ov_remote_context_create_tensor(const ov_remote_context_t* context, const ov_element_type_e type, const ov_shape_t shape,
                                const size_t object_args_size, ov_tensor_t** remote_tensor, ...);
/* The same with an array. */
OPENVINO_C_API(ov_status_e) ov_remote_context_create_tensor_props(const ov_remote_context_t* context, const ov_element_type_e type,
                                      const ov_shape_t shape, const size_t num_properties,
                                      const ov_property_t* properties, ov_tensor_t** remote_tensor);
/* The device. */
OPENVINO_C_API(ov_status_e) ov_remote_context_get_device_name(const ov_remote_context_t* context, char** device_name);
/* What it was made with. */
OPENVINO_C_API(ov_status_e) ov_remote_context_get_params(const ov_remote_context_t* context, size_t* size, char** params);
/* A tensor of the host near the device. */
OPENVINO_C_API(ov_status_e) ov_remote_context_create_host_tensor(const ov_remote_context_t* context, const ov_element_type_e type,
                                     const ov_shape_t shape, ov_tensor_t** tensor);
/* Frees the handle. */
OPENVINO_C_API(void) ov_remote_context_free(ov_remote_context_t* context);
/* What a tensor was made with. */
OPENVINO_C_API(ov_status_e) ov_remote_tensor_get_params(ov_tensor_t* tensor, size_t* size, char** params);
/* The device of a tensor. */
OPENVINO_C_API(ov_status_e) ov_remote_tensor_get_device_name(ov_tensor_t* remote_tensor, char** device_name);
