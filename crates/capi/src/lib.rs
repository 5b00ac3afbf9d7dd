//! `libopenvino_c`: the C API of OpenVINO 2026.4 over Carafe. A program that was built against the original runs on this
//! library without being built again.
//!
//! | file | what |
//! |---|---|
//! | `pointers.rs` | what C hands over: texts, lists, out parameters; the only place that follows pointers of a caller |
//! | `handles.rs` | objects behind opaque handles: a handle is a number that is never given out twice |
//! | `status.rs` | status codes, the last error, the fence that panics stop at |
//! | `variadic.rs` | functions with `...`, which Rust cannot define |
//! | `heap.rs` | memory that the caller frees |
//! | the others | one file a header of the API |
//!
//! A handle is not an address. So one that was freed, one of another kind and one that never was are errors and no crash.

#![allow(unsafe_code)]
// What C sees is public, though no Rust can see it.
#![allow(unreachable_pub, clippy::missing_safety_doc)]

#[cfg(all(panic = "abort", not(test)))]
compile_error!(
    "a panic must not end the program that loads this library: build it with `--profile library`, not `--release`"
);

mod common;
mod compiled_model;
mod core;
mod element_type;
mod handles;
mod heap;
mod infer_request;
mod layout;
mod log;
mod model;
mod opencl;
mod partial_shape;
mod pointers;
mod port;
mod preprocess;
mod properties;
mod property_keys;
mod remote_context;
mod shape;
mod status;
mod strings;
mod tensor;
mod variadic;
