//! `Core`: reading and compiling models, devices, properties.

use crate::errors::OrRaise;
use crate::model;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Reads models, makes them ready for devices, and holds what is registered.
#[pyclass(name = "Core", module = "carafe", frozen, subclass)]
pub(crate) struct Core {
    pub(crate) core: carafe::Core,
}

#[pymethods]
impl Core {
    #[new]
    fn new(py: Python<'_>) -> Core {
        Core { core: py.detach(carafe::core) }
    }
    fn read_model<'py>(&self, py: Python<'py>, model: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let read = py.detach(|| self.core.read_model(model)).or_raise()?;
        model::from_engine(py, read)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Core>()
}
