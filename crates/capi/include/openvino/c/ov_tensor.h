/* Tensors: a type, a shape and memory, which several may hold. */
#pragma once

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_partial_shape.h"
#include "openvino/c/ov_shape.h"

typedef struct ov_tensor ov_tensor_t;

/* Zeros. */
OPENVINO_C_API(ov_status_e) ov_tensor_create(const ov_element_type_e type, const ov_shape_t shape, ov_tensor_t** tensor);
/* Over memory of the program, which must outlive the tensor. */
OPENVINO_C_API(ov_status_e) ov_tensor_create_from_host_ptr(const ov_element_type_e type, const ov_shape_t shape, void* host_ptr,
                               ov_tensor_t** tensor);
/* Texts; those that the array lacks are empty. */
OPENVINO_C_API(ov_status_e) ov_tensor_create_from_string_array(const char** string_array, const size_t array_size, const ov_shape_t shape,
                                   ov_tensor_t** tensor);
/* Sets all texts. */
OPENVINO_C_API(ov_status_e) ov_tensor_set_string_data(ov_tensor_t* tensor, const char** string_array, const size_t array_size);
/* Another shape. Memory that suffices stays; memory of the program cannot grow. */
OPENVINO_C_API(ov_status_e) ov_tensor_set_shape(ov_tensor_t* tensor, const ov_shape_t shape);
/* The shape, to be freed with ov_shape_free. */
OPENVINO_C_API(ov_status_e) ov_tensor_get_shape(const ov_tensor_t* tensor, ov_shape_t* shape);
/* The element type. */
OPENVINO_C_API(ov_status_e) ov_tensor_get_element_type(const ov_tensor_t* tensor, ov_element_type_e* type);
/* The number of elements. */
OPENVINO_C_API(ov_status_e) ov_tensor_get_size(const ov_tensor_t* tensor, size_t* elements_size);
/* The number of bytes. */
OPENVINO_C_API(ov_status_e) ov_tensor_get_byte_size(const ov_tensor_t* tensor, size_t* byte_size);
/* The memory; of texts an array of std::string. */
OPENVINO_C_API(ov_status_e) ov_tensor_data(const ov_tensor_t* tensor, void** data);
/* Frees the handle; requests that use the memory keep it. */
OPENVINO_C_API(void) ov_tensor_free(ov_tensor_t* tensor);
