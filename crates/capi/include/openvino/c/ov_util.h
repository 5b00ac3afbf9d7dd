/* Who hears what the engine reports. */
#pragma once

#include "openvino/c/ov_common.h"

typedef void (*ov_util_log_callback_func)(const char* message);

/* Sends reports to a function; with NULL to nobody. */
OPENVINO_C_API(void) ov_util_set_log_callback(ov_util_log_callback_func func);
/* Sends warnings to stderr again. */
OPENVINO_C_API(void) ov_util_reset_log_callback(void);
