//! What the other files know of models: [`to_engine`] and [`from_engine`]. The class `Model` is written in Python
//! (`carafe/_graph/model.py`), around what `graph` offers.

use crate::graph;
use pyo3::prelude::*;
use std::sync::Arc;

/// The model of the engine that an object is.
pub(crate) fn to_engine(model: &Bound<'_, PyAny>) -> PyResult<carafe::Model> {
    Ok(graph::engine_model(model)?.as_ref().clone())
}

/// A model of the engine as an object.
pub(crate) fn from_engine(py: Python<'_>, model: carafe::Model) -> PyResult<Bound<'_, PyAny>> {
    graph::model_object(py, Arc::new(model))
}

/// Whether an object is a model.
pub(crate) fn is_model(object: &Bound<'_, PyAny>) -> bool {
    object.hasattr("_engine").unwrap_or(false)
}
