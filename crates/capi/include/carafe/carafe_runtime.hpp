// The C API for C++: owners that free what they hold, and exceptions for what fails. Header only; C++17.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "openvino/c/openvino.h"

namespace carafe {

// A call that failed, with its status and the text of the engine.
class Error : public std::runtime_error {
public:
    Error(ov_status_e status, const std::string& text) : std::runtime_error(text), status(status) {}
    const ov_status_e status;
};

// Throws unless the call went well.
inline void check(ov_status_e status) {
    if (status == OK) return;
    std::unique_ptr<const char, void (*)(const char*)> text(ov_get_last_err_msg(), ov_free);
    throw Error(status, text ? text.get() : ov_get_error_info(status));
}

// Frees a handle at its end.
template <class T, void (*Free)(T*)>
class Owner {
public:
    // Makes a handle by a function with an out parameter: Owner::make([&](auto** out) { return ov_...(..., out); }).
    template <class Make>
    static Owner make(Make&& how) {
        T* handle = nullptr;
        check(how(&handle));
        return Owner(handle);
    }
    T* get() const { return handle_.get(); }

private:
    struct Deleter {
        void operator()(T* handle) const { Free(handle); }
    };
    explicit Owner(T* handle) : handle_(handle) {}
    std::unique_ptr<T, Deleter> handle_;
};

using Core = Owner<ov_core_t, ov_core_free>;
using Model = Owner<ov_model_t, ov_model_free>;
using CompiledModel = Owner<ov_compiled_model_t, ov_compiled_model_free>;
using InferRequest = Owner<ov_infer_request_t, ov_infer_request_free>;
using Tensor = Owner<ov_tensor_t, ov_tensor_free>;

}  // namespace carafe
