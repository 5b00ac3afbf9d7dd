//! `GraphOp`: an operation with its attributes. It never changes; another attribute makes another operation.

use super::attrs;
use super::body::{self, BodyParts};
use super::fact::GraphFact;
use super::{engine_tensor, tensor_object};
use crate::errors::{OrRaise, failure};
use crate::tensor::Tensor;
use carafe::prelude::Op;
use carafe::{AttrMap, AttrValue, Constant, EvalEnv, Fact, NodeId, OpFactory, OpInfo, OpRef, Registry};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, OnceLock};

/// Every built-in operation.
pub(super) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(carafe::ops::registry)
}

/// An operation with its attributes.
#[pyclass(name = "GraphOp", module = "carafe._native", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct GraphOp(pub(crate) OpRef);

fn factory_of(info: &'static OpInfo) -> PyResult<&'static OpFactory> {
    let found = registry().find(info.xml_name, info.opset).filter(|f| std::ptr::eq(f.info, info));
    found.ok_or_else(|| failure(format!("{} of {} cannot be made anew", info.name, info.opset)))
}

fn map_of(op: &dyn Op) -> AttrMap {
    op.attrs().into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
}

// Python writes `exclude_pad` where the attribute is `exclude-pad`.
fn declared(info: &'static OpInfo, name: &str) -> Option<&'static carafe::AttrInfo> {
    let spelled = |a: &&carafe::AttrInfo| a.name == name || a.name.replace('-', "_") == name;
    info.attrs.iter().find(spelled)
}

#[pymethods]
impl GraphOp {
    /// The operation of this type and opset; attributes that it does not have are left out.
    #[staticmethod]
    fn create(type_name: &str, opset: &str, attributes: &Bound<'_, PyDict>) -> PyResult<GraphOp> {
        let found = registry().find(type_name, opset).or_else(|| registry().newest(type_name));
        let factory =
            found.ok_or_else(|| failure(format!("Couldn't create operation: {opset} has no '{type_name}'")))?;
        let mut map = AttrMap::new();
        for (key, value) in attributes {
            let key: String = key.extract()?;
            if value.is_none() {
                continue;
            }
            match declared(factory.info, &key) {
                Some(info) => map.set(info.name, attrs::of_python(info, &value)?),
                None if factory.info.any_attrs => map.set(key, attrs::guessed(&value)?),
                None => {}
            }
        }
        Ok(GraphOp(factory.create(&map).or_raise()?))
    }
    /// Name and home opset of the type that an opset has under this name.
    #[staticmethod]
    fn find_type(type_name: &str, opset: &str) -> Option<(&'static str, &'static str)> {
        registry().find(type_name, opset).map(|f| (f.info.name, f.info.opset))
    }
    #[staticmethod]
    fn with_bodies(type_name: &str, opset: &str, bodies: Vec<BodyParts>) -> PyResult<GraphOp> {
        let missing = || failure(format!("{opset} has no '{type_name}'"));
        let factory = registry().find(type_name, opset).ok_or_else(missing)?;
        let map = bodies.into_iter().map(body::whole).map(|(name, body)| (name, AttrValue::Body(Box::new(body))));
        Ok(GraphOp(factory.create(&map.collect()).or_raise()?))
    }
    #[staticmethod]
    fn constant(tensor: &Bound<'_, PyAny>) -> PyResult<GraphOp> {
        Ok(GraphOp(Arc::new(Constant::new(engine_tensor(tensor)?))))
    }
    /// The stored tensor of a Constant.
    #[getter]
    fn tensor(&self) -> PyResult<Option<Tensor>> {
        self.0.get::<Constant>().map(|c| tensor_object(c.tensor().clone())).transpose()
    }
    #[getter]
    fn type_name(&self) -> &str {
        let info = self.0.info();
        if info.builtin { info.name } else { self.0.type_name() }
    }
    #[getter]
    fn opset(&self) -> &str {
        self.0.opset()
    }
    #[getter]
    fn is_sink(&self) -> bool {
        self.0.info().sink
    }
    /// The most inputs that it takes; `None` for any number.
    #[getter]
    fn most_inputs(&self) -> Option<usize> {
        Some(self.0.info().input_range().1).filter(|n| *n != usize::MAX)
    }
    /// Attributes by name, bodies left out.
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.0.attrs() {
            if !matches!(value, AttrValue::Body(_)) {
                dict.set_item(&*name, attrs::to_python(py, &value)?)?;
            }
        }
        Ok(dict)
    }
    /// The attribute that a name of Python means.
    fn attribute_name(&self, name: &str) -> Option<String> {
        if let Some(info) = declared(self.0.info(), name) {
            return Some(info.name.to_string());
        }
        self.0.attrs().into_iter().map(|(n, _)| n.into_owned()).find(|n| n == name)
    }
    /// The same operation with one attribute set.
    fn with_attribute(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<GraphOp> {
        let info = self.0.info();
        let missing = || PyTypeError::new_err(format!("{} has no attribute '{name}'", info.name));
        let attribute = declared(info, name).ok_or_else(missing)?;
        let mut map = map_of(&*self.0);
        map.set(attribute.name, attrs::of_python(attribute, value)?);
        Ok(GraphOp(factory_of(info)?.create(&map).or_raise()?))
    }
    /// Types and shapes of the outputs from those of the inputs.
    fn infer(&self, py: Python<'_>, name: &str, id: u64, inputs: Vec<GraphFact>) -> PyResult<Vec<GraphFact>> {
        let facts: Vec<&Fact> = inputs.iter().map(|f| &f.0).collect();
        let id = NodeId(id as u32);
        let outputs = py.detach(|| carafe::infer_op(name, id, &*self.0, &facts, false)).or_raise()?;
        Ok(outputs.into_iter().map(GraphFact).collect())
    }
    fn has_evaluate(&self) -> bool {
        self.0.has_eval()
    }
    /// The outputs for these inputs.
    fn evaluate(&self, py: Python<'_>, name: &str, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Tensor>> {
        let tensors = inputs.iter().map(engine_tensor).collect::<PyResult<Vec<_>>>()?;
        let mut env = EvalEnv::default();
        let outputs = py.detach(|| carafe::eval_op(name, NodeId(0), &*self.0, tensors, &mut env)).or_raise()?;
        outputs.into_iter().map(tensor_object).collect()
    }
    /// Bodies with their port maps.
    fn bodies(&self) -> Vec<BodyParts> {
        self.0.bodies().into_iter().map(|(name, b)| body::parts(name, b)).collect()
    }
    /// Whether type and attributes are the same.
    fn same_as(&self, other: &GraphOp) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.eq_op(&*other.0)
    }
    /// The object of Python behind an operation that is written in Python.
    fn python_node(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        super::python_op::object_of(py, &*self.0)
    }
}
