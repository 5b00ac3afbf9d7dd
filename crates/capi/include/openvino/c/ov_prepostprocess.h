/* Steps between what a program has and what a model takes. */
#pragma once

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_layout.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_preprocess_prepostprocessor ov_preprocess_prepostprocessor_t;
typedef struct ov_preprocess_input_info ov_preprocess_input_info_t;
typedef struct ov_preprocess_input_tensor_info ov_preprocess_input_tensor_info_t;
typedef struct ov_preprocess_output_info ov_preprocess_output_info_t;
typedef struct ov_preprocess_output_tensor_info ov_preprocess_output_tensor_info_t;
typedef struct ov_preprocess_input_model_info ov_preprocess_input_model_info_t;
typedef struct ov_preprocess_preprocess_steps ov_preprocess_preprocess_steps_t;

typedef enum {
    UNDEFINE = 0U,
    NV12_SINGLE_PLANE,
    NV12_TWO_PLANES,
    I420_SINGLE_PLANE,
    I420_THREE_PLANES,
    RGB,
    BGR,
    GRAY,
    RGBX,
    BGRX
} ov_color_format_e;

typedef enum { RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_NEAREST } ov_preprocess_resize_algorithm_e;

typedef enum { CONSTANT = 0, EDGE, REFLECT, SYMMETRIC } ov_padding_mode_e;

/* Begins a description. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_create(const ov_model_t* model,
                                      ov_preprocess_prepostprocessor_t** preprocess);
/* Puts it into the model, which is handed out again. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_build(const ov_preprocess_prepostprocessor_t* preprocess, ov_model_t** model);
/* The only input. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_input_info(const ov_preprocess_prepostprocessor_t* preprocess,
    ov_preprocess_input_info_t** preprocess_input_info);
/* An input by name. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_input_info_by_name(const ov_preprocess_prepostprocessor_t* preprocess, const char* tensor_name,
    ov_preprocess_input_info_t** preprocess_input_info);
/* An input by index. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_input_info_by_index(const ov_preprocess_prepostprocessor_t* preprocess, const size_t tensor_index,
    ov_preprocess_input_info_t** preprocess_input_info);
/* The only output. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_output_info(const ov_preprocess_prepostprocessor_t* preprocess,
    ov_preprocess_output_info_t** preprocess_output_info);
/* An output by name. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_output_info_by_name(const ov_preprocess_prepostprocessor_t* preprocess, const char* tensor_name,
    ov_preprocess_output_info_t** preprocess_output_info);
/* An output by index. */
OPENVINO_C_API(ov_status_e) ov_preprocess_prepostprocessor_get_output_info_by_index(const ov_preprocess_prepostprocessor_t* preprocess, const size_t tensor_index,
    ov_preprocess_output_info_t** preprocess_output_info);
/* What the program gives. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_info_get_tensor_info(const ov_preprocess_input_info_t* info,
    ov_preprocess_input_tensor_info_t** tensor_info);
/* The steps. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_info_get_preprocess_steps(const ov_preprocess_input_info_t* info,
    ov_preprocess_preprocess_steps_t** steps);
/* What the model takes. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_info_get_model_info(const ov_preprocess_input_info_t* info,
    ov_preprocess_input_model_info_t** model_info);
/* What the program gets. */
OPENVINO_C_API(ov_status_e) ov_preprocess_output_info_get_tensor_info(const ov_preprocess_output_info_t* info,
    ov_preprocess_output_tensor_info_t** tensor_info);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_prepostprocessor_free(ov_preprocess_prepostprocessor_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_input_info_free(ov_preprocess_input_info_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_input_tensor_info_free(ov_preprocess_input_tensor_info_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_output_info_free(ov_preprocess_output_info_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_output_tensor_info_free(ov_preprocess_output_tensor_info_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_input_model_info_free(ov_preprocess_input_model_info_t* handle);
/* Frees the handle. */
OPENVINO_C_API(void) ov_preprocess_preprocess_steps_free(ov_preprocess_preprocess_steps_t* handle);
/* The element type. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_element_type(ov_preprocess_input_tensor_info_t* tensor_info, const ov_element_type_e element_type);
/* What the channels are. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_color_format(ov_preprocess_input_tensor_info_t* tensor_info, const ov_color_format_e colorFormat);
/* The same, with a name for each plane. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_color_format_with_subname(ov_preprocess_input_tensor_info_t* tensor_info, const ov_color_format_e colorFormat,
    const size_t sub_names_size, ...);
/* The same with an array. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_color_format_with_subnames(ov_preprocess_input_tensor_info_t* tensor_info, const ov_color_format_e colorFormat,
    const size_t sub_names_size, const char** sub_names);
/* Height and width. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_spatial_static_shape(ov_preprocess_input_tensor_info_t* tensor_info, const size_t input_height,
    const size_t input_width);
/* Where the tensor lies; devices here read memory of the host. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_memory_type(ov_preprocess_input_tensor_info_t* tensor_info, const char* mem_type);
/* Type and shape of a tensor. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_from(ov_preprocess_input_tensor_info_t* tensor_info, const ov_tensor_t* tensor);
/* What the axes are. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_tensor_info_set_layout(ov_preprocess_input_tensor_info_t* tensor_info, ov_layout_t* layout);
/* What the axes are inside of the model. */
OPENVINO_C_API(ov_status_e) ov_preprocess_input_model_info_set_layout(ov_preprocess_input_model_info_t* model_info, ov_layout_t* layout);
/* The element type that the program gets. */
OPENVINO_C_API(ov_status_e) ov_preprocess_output_set_element_type(ov_preprocess_output_tensor_info_t* tensor_info,
    const ov_element_type_e element_type);
/* To height and width of the model. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_resize(ov_preprocess_preprocess_steps_t* steps, const ov_preprocess_resize_algorithm_e resize_algorithm);
/* Divides by a value. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_scale(ov_preprocess_preprocess_steps_t* steps, float value);
/* Divides by a value for each channel. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_scale_multi_channels(ov_preprocess_preprocess_steps_t* steps, const float* values,
    const int32_t value_size);
/* Subtracts a value. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_mean(ov_preprocess_preprocess_steps_t* steps, float value);
/* Subtracts a value for each channel. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_mean_multi_channels(ov_preprocess_preprocess_steps_t* steps, const float* values,
    const int32_t value_size);
/* Keeps a range of every axis. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_crop(ov_preprocess_preprocess_steps_t* steps, int32_t* begin, int32_t begin_size, int32_t* end,
    int32_t end_size);
/* Another order of axes. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_convert_layout(ov_preprocess_preprocess_steps_t* steps, ov_layout_t* layout);
/* Swaps the first and the last channel. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_reverse_channels(ov_preprocess_preprocess_steps_t* steps);
/* Another type. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_convert_element_type(ov_preprocess_preprocess_steps_t* steps, const ov_element_type_e element_type);
/* Other colours. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_convert_color(ov_preprocess_preprocess_steps_t* steps, const ov_color_format_e colorFormat);
/* Adds elements around. */
OPENVINO_C_API(ov_status_e) ov_preprocess_preprocess_steps_pad(const ov_preprocess_preprocess_steps_t* steps, const int* const pads_begin, size_t pads_begin_size,
    const int* const pads_end, size_t pads_end_size, float value, ov_padding_mode_e mode);
