/* Names of properties of the device AUTO. */
#pragma once

#include "openvino/c/ov_common.h"

OPENVINO_C_VAR(const char*) ov_property_key_intel_auto_device_bind_buffer;
OPENVINO_C_VAR(const char*) ov_property_key_intel_auto_enable_startup_fallback;
OPENVINO_C_VAR(const char*) ov_property_key_intel_auto_enable_runtime_fallback;
