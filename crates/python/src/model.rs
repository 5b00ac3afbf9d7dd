//! `Model` as far as running needs it. [`to_engine`] and [`from_engine`] are what the other files know of models.

use crate::errors::failure;
use pyo3::prelude::*;
use std::sync::Mutex;

/// A model.
#[pyclass(name = "Model", module = "carafe", frozen)]
pub(crate) struct Model(Mutex<carafe::Model>);

/// The model of the engine that an object is.
pub(crate) fn to_engine(model: &Bound<'_, PyAny>) -> PyResult<carafe::Model> {
    let wrong = |_| failure(format!("a carafe.Model is expected, found {}", model.get_type()));
    let model = model.cast::<Model>().map_err(|e| wrong(e.to_string()))?;
    Ok(model.get().0.lock().unwrap_or_else(|e| e.into_inner()).clone())
}

/// A model of the engine as an object.
pub(crate) fn from_engine(py: Python<'_>, model: carafe::Model) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Model(Mutex::new(model)))?.into_any())
}

/// Whether an object is a model.
pub(crate) fn is_model(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<Model>()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Model>()
}
