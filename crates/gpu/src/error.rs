//! Errors of OpenCL in the engine's words.

use carafe_graph::Error;

/// As an error of the engine.
pub(crate) fn told(e: carafe_opencl::Error) -> Error {
    match e {
        carafe_opencl::Error::NoDevice(_) => Error::not_found(e.to_string()),
        _ => Error::invalid(e.to_string()),
    }
}
