/* A model made ready for a device. */
#pragma once

#include "openvino/c/ov_common.h"
#include "openvino/c/ov_infer_request.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_remote_context.h"

typedef struct ov_compiled_model ov_compiled_model_t;

/* The number of inputs. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_inputs_size(const ov_compiled_model_t* compiled_model, size_t* size);
/* The only input. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_input(const ov_compiled_model_t* compiled_model, ov_output_const_port_t** input_port);
/* An input by index. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_input_by_index(const ov_compiled_model_t* compiled_model, const size_t index,
                                  ov_output_const_port_t** input_port);
/* An input by name. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_input_by_name(const ov_compiled_model_t* compiled_model, const char* name,
                                 ov_output_const_port_t** input_port);
/* The number of outputs. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_outputs_size(const ov_compiled_model_t* compiled_model, size_t* size);
/* The only output. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_output(const ov_compiled_model_t* compiled_model, ov_output_const_port_t** output_port);
/* An output by index. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_output_by_index(const ov_compiled_model_t* compiled_model, const size_t index,
                                  ov_output_const_port_t** output_port);
/* An output by name. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_output_by_name(const ov_compiled_model_t* compiled_model, const char* name,
                                 ov_output_const_port_t** output_port);
/* The graph that really runs. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_get_runtime_model(const ov_compiled_model_t* compiled_model, ov_model_t** model);
/* A new request. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_create_infer_request(const ov_compiled_model_t* compiled_model,
                                       ov_infer_request_t** infer_request);
/* One pair of texts. What is compiled does not change: NOT_IMPLEMENTED. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_set_property(const ov_compiled_model_t* compiled_model, ...);
/* The same with an array. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_set_properties(const ov_compiled_model_t* compiled_model, const size_t num_properties,
                                 const ov_property_t* properties);
/* A property as text, to be freed with ov_free. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_get_property(const ov_compiled_model_t* compiled_model, const char* property_key,
                               char** property_value);
/* Writes a file for ov_core_import_model. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_export_model(const ov_compiled_model_t* compiled_model, const char* export_model_path);
/* Frees the handle; requests stay. */
OPENVINO_C_API(void) ov_compiled_model_free(ov_compiled_model_t* compiled_model);
/* The context of its device. */
OPENVINO_C_API(ov_status_e) ov_compiled_model_get_context(const ov_compiled_model_t* compiled_model, ov_remote_context_t** context);
