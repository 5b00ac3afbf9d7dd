//! `ConstOutput`: an input or output of a compiled model.

use crate::compiled_model::Compiled;
use crate::errors::failure;
use crate::model;
use crate::shapes::{PartialShape, shape_object};
use crate::types::Type;
use carafe::{CompiledModel, Port as EnginePort};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PySet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Which side of a model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Side {
    Input,
    Output,
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Input => "input",
            Side::Output => "output",
        }
    }
    pub(crate) fn ports(self, compiled: &CompiledModel) -> &[EnginePort] {
        match self {
            Side::Input => compiled.inputs(),
            Side::Output => compiled.outputs(),
        }
    }
}

/// An input or output of a compiled model.
#[pyclass(name = "ConstOutput", module = "carafe", frozen)]
pub(crate) struct ConstOutput {
    pub(crate) compiled: Compiled,
    pub(crate) side: Side,
    pub(crate) number: usize,
}

impl ConstOutput {
    pub(crate) fn port(&self) -> &EnginePort {
        &self.side.ports(&self.compiled)[self.number]
    }
    // What the output of its node answers.
    fn of_node<'py>(slf: &Bound<'py, Self>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::get_node(slf)?.call_method1("output", (0,))?.call_method0(method)
    }
    // What the port is: the compiled model by its address, the side, the place.
    fn key(&self) -> (usize, Side, usize) {
        (Arc::as_ptr(self.compiled.device_model()).cast::<()>().addr(), self.side, self.number)
    }
}

#[pymethods]
impl ConstOutput {
    fn __richcmp__(&self, other: &ConstOutput, op: CompareOp) -> bool {
        op.matches(self.key().cmp(&other.key()))
    }
    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key().hash(&mut hasher);
        hasher.finish()
    }
    fn __repr__(&self) -> String {
        let port = self.port();
        let names: Vec<&str> = port.names.iter().map(String::as_str).collect();
        format!("<ConstOutput: names[{}] shape[{}] type: {}>", names.join(", "), port.shape, port.ty)
    }
    fn __copy__(&self) -> ConstOutput {
        ConstOutput { compiled: self.compiled.clone(), side: self.side, number: self.number }
    }
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err("cannot deepcopy 'carafe.ConstOutput' object."))
    }
    fn get_element_type(&self) -> Type {
        Type(self.port().ty)
    }
    #[getter(element_type)]
    fn element_type_(&self) -> Type {
        Type(self.port().ty)
    }
    fn get_partial_shape(&self) -> PartialShape {
        self.port().shape.clone().into()
    }
    #[getter(partial_shape)]
    fn partial_shape_(&self) -> PartialShape {
        self.port().shape.clone().into()
    }
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = &self.port().shape;
        let sizes = shape.to_static();
        let sizes = sizes.ok_or_else(|| failure(format!("to_shape was called on a dynamic shape: [{shape}]")))?;
        shape_object(py, &sizes)
    }
    #[getter(shape)]
    fn shape_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get_shape(py)
    }
    fn get_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        PySet::new(py, &self.port().names)
    }
    #[getter(names)]
    fn names_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        self.get_names(py)
    }
    /// Any of its names; an error when it has none.
    fn get_any_name(&self) -> PyResult<String> {
        let none = || failure("Attempt to get a name for a Tensor without names");
        self.port().names.iter().next().cloned().ok_or_else(none)
    }
    #[getter(any_name)]
    fn any_name_(&self) -> PyResult<String> {
        self.get_any_name()
    }
    /// Which output of its node it is.
    fn get_index(&self) -> usize {
        0
    }
    #[getter(index)]
    fn index_(&self) -> usize {
        0
    }
    /// A node that stands for the port: a parameter of its type, shape and names, or the result of the graph that runs.
    fn get_node<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (me, py) = (slf.get(), slf.py());
        if let Some(node) = me.compiled.node(py, me.side, me.number) {
            return Ok(node);
        }
        let made = py.import("carafe._compiled_ports")?.getattr("node_of")?.call1((slf,))?;
        me.compiled.keep_node(me.side, me.number, &made);
        Ok(made)
    }
    #[getter(node)]
    fn node_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::get_node(slf)
    }
    fn get_rt_info<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("carafe._compiled_ports")?.getattr("rt_info_of")?.call1((slf,))
    }
    #[getter(rt_info)]
    fn rt_info_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::get_rt_info(slf)
    }
    /// The graph that really runs.
    #[getter(_runtime_model)]
    fn _runtime_model_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        model::from_engine(py, self.compiled.runtime_model())
    }
    fn get_target_inputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::of_node(slf, "get_target_inputs")
    }
    #[getter(target_inputs)]
    fn target_inputs_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::of_node(slf, "get_target_inputs")
    }
    fn get_tensor<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::of_node(slf, "get_tensor")
    }
    #[getter(tensor)]
    fn tensor_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ConstOutput::of_node(slf, "get_tensor")
    }
    /// Where it stands among the inputs or outputs of the model.
    #[getter(_number)]
    fn _number_(&self) -> usize {
        self.number
    }
    #[getter(_is_input)]
    fn _is_input_(&self) -> bool {
        self.side == Side::Input
    }
    /// The name a user would call it by, with or without names of its tensor.
    #[getter(_name)]
    fn _name_(&self) -> &str {
        &self.port().name
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ConstOutput>()
}
