//! Errors of the engine as exceptions: `RuntimeError`, as programs of OpenVINO expect, but for memory.

use carafe::TensorError;
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};

/// Turns the error of a result into an exception.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> Result<T, PyErr>;
}

impl<T> OrRaise<T> for Result<T, carafe::Error> {
    fn or_raise(self) -> Result<T, PyErr> {
        self.map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }
}

impl<T> OrRaise<T> for Result<T, TensorError> {
    fn or_raise(self) -> Result<T, PyErr> {
        self.map_err(|e| match e {
            TensorError::OutOfMemory { .. } => PyMemoryError::new_err(e.to_string()),
            _ => PyRuntimeError::new_err(e.to_string()),
        })
    }
}

/// A `RuntimeError` with this text.
pub(crate) fn failure(text: impl Into<String>) -> PyErr {
    PyRuntimeError::new_err(text.into())
}
