//! What is known of a value: element type, shape, and the elements of small constants.

use super::tensor_object;
use crate::shapes::{PartialShape, shape_of};
use crate::tensor::Tensor;
use crate::types::{self, Type};
use carafe::Fact;
use pyo3::prelude::*;

/// What is known of a value.
#[pyclass(name = "GraphFact", module = "carafe._native", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct GraphFact(pub(crate) Fact);

#[pymethods]
impl GraphFact {
    #[new]
    fn new(element_type: &Bound<'_, PyAny>, shape: &Bound<'_, PyAny>) -> PyResult<GraphFact> {
        Ok(GraphFact(Fact::new(types::of_object(element_type)?, shape_of(shape)?)))
    }
    #[staticmethod]
    fn unknown() -> GraphFact {
        GraphFact(Fact::unknown())
    }
    #[getter]
    fn element_type(&self) -> Type {
        Type(self.0.ty)
    }
    #[getter]
    fn partial_shape(&self) -> PartialShape {
        self.0.shape.clone().into()
    }
    /// The elements, where all are known.
    #[getter]
    fn tensor(&self) -> PyResult<Option<Tensor>> {
        self.0.tensor().map(|t| tensor_object(t.clone())).transpose()
    }
}
