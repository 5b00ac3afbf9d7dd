//! Models as graphs of nodes that Python builds and edits.

use pyo3::prelude::*;

/// Adds the classes of this folder to the module.
pub(crate) fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
