//! What the graph layer in Python (`python/carafe/_graph`) needs of the engine: operations by name, inference and evaluation of
//! one operation, and models taken apart and put together. Nodes themselves are objects of Python: identity, subclasses and
//! weak references come with the language.

mod attrs;
mod body;
mod builder;
mod fact;
mod model;
mod op;
mod passes;
mod python_op;
mod rt_info;

pub(crate) use attrs::{guessed as attribute_of_python, to_python as attribute_to_python};
pub(crate) use fact::GraphFact;
pub(crate) use model::{EngineModel, engine_model, model_object};
pub(crate) use op::GraphOp;
pub(crate) use python_op::info_of as python_info;

use crate::tensor::{Cell, Tensor, of_array};
use pyo3::prelude::*;

/// A tensor of the engine as an object; memory is shared.
fn tensor_object(tensor: carafe::Tensor) -> PyResult<Tensor> {
    Ok(Tensor { cell: Cell::of_engine(&tensor)? })
}

/// The same as any object.
pub(crate) fn tensor_to_python(py: Python<'_>, tensor: carafe::Tensor) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, tensor_object(tensor)?)?.into_any())
}

/// The engine's tensor of a `Tensor`, sharing its memory, or of a copy of what can be an array.
fn engine_tensor(object: &Bound<'_, PyAny>) -> PyResult<carafe::Tensor> {
    match object.cast::<Tensor>() {
        Ok(tensor) => tensor.get().cell.to_engine(),
        Err(_) => of_array(object, false)?.to_engine(),
    }
}

/// Adds the classes and functions of this folder to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<fact::GraphFact>()?;
    module.add_class::<op::GraphOp>()?;
    module.add_class::<model::EngineModel>()?;
    module.add_class::<model::NodeEntry>()?;
    module.add_class::<builder::ModelBuilder>()?;
    module.add_function(wrap_pyfunction!(python_op::python_op, module)?)?;
    module.add_function(wrap_pyfunction!(passes::run_pass, module)?)?;
    Ok(())
}
