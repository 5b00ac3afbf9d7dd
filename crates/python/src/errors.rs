//! Errors of the engine as exceptions: `RuntimeError`, as programs of OpenVINO expect, but for memory.

use carafe::TensorError;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

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

/// An exception of Python code that the engine called, as an error of the engine: its text, and where it was raised.
pub(crate) fn raised(error: PyErr) -> carafe::Error {
    Python::attach(|py| {
        let text = format!("{}: {}", error.get_type(py), error.value(py));
        let lines = error.traceback(py).and_then(|t| t.format().ok()).map(|t| t.trim_end().to_string());
        let text = text.trim_start_matches("<class '").replacen("'>", "", 1);
        carafe::Error::invalid(lines.map_or(text.clone(), |lines| format!("{text}\n{lines}")))
    })
}
