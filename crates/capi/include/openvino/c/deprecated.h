/* Marks of what goes away; nothing does. */
#pragma once

#if defined(__GNUC__)
#define OPENVINO_DEPRECATED(msg) __attribute__((deprecated(msg)))
#define OPENVINO_ENUM_DEPRECATED(msg) __attribute__((deprecated(msg)))
#elif defined(_MSC_VER)
#define OPENVINO_DEPRECATED(msg) __declspec(deprecated(msg))
#define OPENVINO_ENUM_DEPRECATED(msg)
#else
#define OPENVINO_DEPRECATED(msg)
#define OPENVINO_ENUM_DEPRECATED(msg)
#endif
