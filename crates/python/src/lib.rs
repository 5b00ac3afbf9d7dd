//! The native half of the Python package `carafe`: classes around the engine, in the shape of OpenVINO's Python API. What needs no
//! speed is written in Python, in `python/carafe`.

#![deny(unsafe_op_in_unsafe_fn)]
// Objects of Python print themselves by `__repr__`.
#![allow(missing_debug_implementations)]
// Methods have the names of OpenVINO's API.
#![allow(clippy::inherent_to_string, clippy::wrong_self_convention)]

#[cfg(all(panic = "abort", not(test)))]
compile_error!(
    "a panic must not end the program that loads this library: build it with `--profile library`, not `--release`"
);

mod async_queue;
mod command;
mod compiled_model;
mod core;
mod errors;
mod extension;
mod graph;
mod infer_request;
mod inputs;
mod layout;
mod memory;
mod model;
mod numpy;
mod numpy_api;
mod port;
mod preprocess;
mod process;
mod properties;
mod remote;
mod results;
mod shapes;
mod tensor;
mod types;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    types::register(module)?;
    shapes::register(module)?;
    layout::register(module)?;
    tensor::register(module)?;
    port::register(module)?;
    results::register(module)?;
    graph::register(module)?;
    core::register(module)?;
    remote::register(module)?;
    extension::register(module)?;
    compiled_model::register(module)?;
    infer_request::register(module)?;
    async_queue::register(module)?;
    preprocess::register(module)?;
    process::register(module)?;
    command::register(module)
}
