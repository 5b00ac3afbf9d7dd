/* Reading and compiling models, devices, properties, extensions. */
#pragma once

#include "openvino/c/deprecated.h"
#include "openvino/c/ov_common.h"
#include "openvino/c/ov_compiled_model.h"
#include "openvino/c/ov_model.h"
#include "openvino/c/ov_node.h"
#include "openvino/c/ov_property.h"
#include "openvino/c/ov_remote_context.h"
#include "openvino/c/ov_tensor.h"

typedef struct ov_core ov_core_t;

typedef struct ov_version {
    const char* buildNumber;
    const char* description;
} ov_version_t;

typedef struct {
    const char* device_name;
    ov_version_t version;
} ov_core_version_t;

typedef struct {
    ov_core_version_t* versions;
    size_t size;
} ov_core_version_list_t;

typedef struct {
    char** devices;
    size_t size;
} ov_available_devices_t;

/* The release whose API this is, and the engine's own version. */
OPENVINO_C_API(ov_status_e) ov_get_openvino_version(ov_version_t* version);
/* Frees the texts. */
OPENVINO_C_API(void) ov_version_free(ov_version_t* version);
/* A core with all that is built in. */
OPENVINO_C_API(ov_status_e) ov_core_create(ov_core_t** core);
/* The same with the plugins of a plugins.xml. */
OPENVINO_C_API(ov_status_e) ov_core_create_with_config(const char* xml_config_file, ov_core_t** core);
/* The same. */
OPENVINO_C_API(ov_status_e) ov_core_create_with_config_unicode(const wchar_t* xml_config_file_ws, ov_core_t** core);
/* Frees the handle; models and compiled models stay. */
OPENVINO_C_API(void) ov_core_free(ov_core_t* core);
/* Reads a model of any format; without bin_path weights are looked for beside it. */
OPENVINO_C_API(ov_status_e) ov_core_read_model(const ov_core_t* core, const char* model_path, const char* bin_path, ov_model_t** model);
/* The same. */
OPENVINO_C_API(ov_status_e) ov_core_read_model_unicode(const ov_core_t* core, const wchar_t* model_path, const wchar_t* bin_path,
                           ov_model_t** model);
/* Out of memory; weights may be NULL. */
OPENVINO_C_API(ov_status_e) ov_core_read_model_from_memory_buffer(const ov_core_t* core, const char* model_str, const size_t str_len,
                                      const ov_tensor_t* weights, ov_model_t** model);
/* Compiles a model; device_name NULL is AUTO. property_args_size counts arguments: two for each pair. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model(const ov_core_t* core, const ov_model_t* model, const char* device_name,
    const size_t property_args_size, ov_compiled_model_t** compiled_model, ...);
/* The same with an array of pairs. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_props(const ov_core_t* core, const ov_model_t* model, const char* device_name,
    const size_t num_properties, const ov_property_t* properties, ov_compiled_model_t** compiled_model);
/* Reads and compiles a file. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_from_file(const ov_core_t* core, const char* model_path, const char* device_name,
    const size_t property_args_size, ov_compiled_model_t** compiled_model, ...);
/* The same with an array of pairs. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_from_file_props(const ov_core_t* core, const char* model_path, const char* device_name,
    const size_t num_properties, const ov_property_t* properties, ov_compiled_model_t** compiled_model);
/* The same. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_from_file_unicode(const ov_core_t* core, const wchar_t* model_path, const char* device_name,
    const size_t property_args_size, ov_compiled_model_t** compiled_model, ...);
/* The same with an array of pairs. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_from_file_unicode_props(const ov_core_t* core, const wchar_t* model_path, const char* device_name,
    const size_t num_properties, const ov_property_t* properties, ov_compiled_model_t** compiled_model);
/* For the device of a context. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_with_context(const ov_core_t* core, const ov_model_t* model, const ov_remote_context_t* context,
    const size_t property_args_size, ov_compiled_model_t** compiled_model, ...);
/* The same with an array of pairs. */
OPENVINO_C_API(ov_status_e) ov_core_compile_model_with_context_props(const ov_core_t* core, const ov_model_t* model, const ov_remote_context_t* context,
    const size_t num_properties, const ov_property_t* properties, ov_compiled_model_t** compiled_model);
/* Adds a library written with the SDK of Carafe. */
OPENVINO_C_API(ov_status_e) ov_core_add_extension(const ov_core_t* core, const char* path);
/* One pair: a key and a value. */
OPENVINO_C_API(ov_status_e) ov_core_set_property(const ov_core_t* core, const char* device_name, ...);
/* An array of pairs. */
OPENVINO_C_API(ov_status_e) ov_core_set_properties(const ov_core_t* core, const char* device_name, const size_t num_properties,
                       const ov_property_t* properties);
/* A property as text, to be freed with ov_free. */
OPENVINO_C_API(ov_status_e) ov_core_get_property(const ov_core_t* core, const char* device_name, const char* property_key,
                     char** property_value);
/* Names of the devices that are here. */
OPENVINO_C_API(ov_status_e) ov_core_get_available_devices(const ov_core_t* core, ov_available_devices_t* devices);
/* Frees the list. */
OPENVINO_C_API(void) ov_available_devices_free(ov_available_devices_t* devices);
/* Loads what was exported. */
OPENVINO_C_API(ov_status_e) ov_core_import_model(const ov_core_t* core, const char* content, const size_t content_size,
                     const char* device_name, ov_compiled_model_t** compiled_model);
/* Versions of a device and of those it is made of. */
OPENVINO_C_API(ov_status_e) ov_core_get_versions_by_device_name(const ov_core_t* core, const char* device_name,
                                    ov_core_version_list_t* versions);
/* Frees the list. */
OPENVINO_C_API(void) ov_core_versions_free(ov_core_version_list_t* versions);
/* A context of a device. */
OPENVINO_C_API(ov_status_e) ov_core_create_context(const ov_core_t* core, const char* device_name, const size_t context_args_size,
                       ov_remote_context_t** context, ...);
/* The same with an array. */
OPENVINO_C_API(ov_status_e) ov_core_create_context_props(const ov_core_t* core, const char* device_name, const size_t num_properties,
                             const ov_property_t* properties, ov_remote_context_t** context);
/* The context that a device works in. */
OPENVINO_C_API(ov_status_e) ov_core_get_default_context(const ov_core_t* core, const char* device_name, ov_remote_context_t** context);
/* Nothing is left to be done. */
OPENVINO_C_API(void) ov_shutdown(void);
