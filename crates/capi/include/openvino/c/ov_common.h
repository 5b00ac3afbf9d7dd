/* Status codes, element types and the macros of all other headers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Functions with wide characters in paths are there on every system. */
#ifndef OPENVINO_ENABLE_UNICODE_PATH_SUPPORT
#define OPENVINO_ENABLE_UNICODE_PATH_SUPPORT
#endif
#include <wchar.h>

#ifdef __cplusplus
#define OPENVINO_C_API_EXTERN extern "C"
#else
#define OPENVINO_C_API_EXTERN extern
#endif

#if defined(_WIN32) && !defined(OPENVINO_STATIC_LIBRARY)
#define OPENVINO_C_API(...) OPENVINO_C_API_EXTERN __declspec(dllimport) __VA_ARGS__ __cdecl
#define OPENVINO_C_VAR(...) OPENVINO_C_API_EXTERN __declspec(dllimport) __VA_ARGS__
#define OPENVINO_C_API_CALLBACK __cdecl
#else
#define OPENVINO_C_API(...) OPENVINO_C_API_EXTERN __VA_ARGS__
#define OPENVINO_C_VAR(...) OPENVINO_C_API_EXTERN __VA_ARGS__
#define OPENVINO_C_API_CALLBACK
#endif

#if defined(__GNUC__) && !defined(_WIN32)
#define OV_NODISCARD __attribute__((warn_unused_result))
#else
#define OV_NODISCARD
#endif

/* What a function answers. Out parameters are written only with OK. */
typedef enum {
    OK = 0,
    GENERAL_ERROR = -1,           /* the engine refused; ov_get_last_err_msg says why */
    NOT_IMPLEMENTED = -2,         /* well asked, and nobody here does it */
    NETWORK_NOT_LOADED = -3,
    PARAMETER_MISMATCH = -4,      /* arguments that do not fit each other */
    NOT_FOUND = -5,
    OUT_OF_BOUNDS = -6,
    UNEXPECTED = -7,
    REQUEST_BUSY = -8,            /* an inference runs: wait for it */
    RESULT_NOT_READY = -9,        /* the time to wait has passed */
    NOT_ALLOCATED = -10,
    INFER_NOT_STARTED = -11,
    NETWORK_NOT_READ = -12,
    INFER_CANCELLED = -13,
    INVALID_C_PARAM = -14,        /* a null, a freed handle, a handle of another kind, an unknown number */
    UNKNOWN_C_ERROR = -15,
    NOT_IMPLEMENT_C_METHOD = -16,
    UNKNOW_EXCEPTION = -17,       /* a bug in the engine */
} ov_status_e;

/* Types of elements, numbered as since 2025.1. */
typedef enum {
    DYNAMIC = 0U,
    BOOLEAN,
    BF16,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I64,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
    U16,
    U32,
    U64,
    NF4,
    F8E4M3,
    F8E5M3, /* 5 bits of exponent and 2 of mantissa */
    STRING,
    F4E2M1,
    F8E8M0,
} ov_element_type_e;

/* Called twice: with out == NULL for the size, then for the bytes. */
typedef void (*encryption_func)(const char* in, const size_t in_size, char* out, size_t* out_size);

/* Value of the property CACHE_ENCRYPTION_CALLBACKS. */
typedef struct {
    encryption_func encrypt_func;
    encryption_func decrypt_func;
} ov_encryption_callbacks;

/* A static text for a status. */
OPENVINO_C_API(const char*) ov_get_error_info(ov_status_e status);
/* Frees a text that a function gave. */
OPENVINO_C_API(void) ov_free(const char* content);
/* The text of the last error of the process, to be freed with ov_free, or NULL. */
OPENVINO_C_API(const char*) ov_get_last_err_msg(void);
