//! `EngineModel`: a model as the engine has it. It never changes, so Python and the engine may both hold it.

use super::fact::GraphFact;
use super::op::GraphOp;
use super::rt_info;
use super::{engine_tensor, tensor_object};
use crate::errors::OrRaise;
use crate::tensor::Tensor;
use carafe::{Dim, Fact, Model, NodeId, PartialShape};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;

/// A model as the engine has it.
#[pyclass(name = "EngineModel", module = "carafe._native", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct EngineModel(pub(crate) Arc<Model>);

/// A node of a model that was taken apart.
#[pyclass(name = "NodeEntry", module = "carafe._native", frozen, get_all)]
pub(crate) struct NodeEntry {
    id: u32,
    instance: u64,
    op: GraphOp,
    name: String,
    inputs: Vec<(u32, usize)>,
    facts: Vec<GraphFact>,
    names: Vec<(usize, Vec<String>)>,
    info: Option<Py<PyTuple>>,
    output_info: Vec<(usize, Py<PyTuple>)>,
    input_info: Vec<(usize, Py<PyTuple>)>,
}

/// How many symbols a node has; `carafe_graph` numbers them so.
const SYMBOLS: u32 = 64;

#[pymethods]
impl EngineModel {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }
    fn rt_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rt_info::tree_to_python(py, &self.0.rt_info)
    }
    /// All nodes, producers first; `first` is the number that the first of them gets in Python.
    fn nodes(&self, py: Python<'_>, first: u64) -> PyResult<Vec<NodeEntry>> {
        let model = &*self.0;
        let order = model.topological_order().or_raise()?;
        let instances: HashMap<NodeId, u64> = order.iter().copied().zip(first..).collect();
        let info = |info: &carafe::RtInfo| Ok::<_, PyErr>(rt_info::to_python(py, info)?.map(Bound::unbind));
        let mut entries = Vec::with_capacity(order.len());
        for id in order {
            let node = model.node(id);
            let (mut names, mut output_info, mut input_info) = (vec![], vec![], vec![]);
            for (port, output) in node.outputs().iter().enumerate() {
                if !output.names.is_empty() {
                    names.push((port, output.names.iter().cloned().collect()));
                }
                output_info.extend(info(&output.rt_info)?.map(|i| (port, i)));
            }
            for (port, input) in node.input_rt_info.iter().enumerate() {
                input_info.extend(info(input)?.map(|i| (port, i)));
            }
            entries.push(NodeEntry {
                id: id.0,
                instance: instances[&id],
                op: GraphOp(node.op_ref().clone()),
                name: node.name().to_string(),
                inputs: node.inputs().iter().map(|v| (v.node.0, v.port)).collect(),
                facts: node.outputs().iter().map(|o| renumbered(&o.fact, &instances)).collect(),
                names,
                info: info(&node.rt_info)?,
                output_info,
                input_info,
            });
        }
        Ok(entries)
    }
    /// Number of nodes.
    fn __len__(&self) -> usize {
        self.0.len()
    }
    /// Numbers of parameters, results and sinks.
    fn ends(&self) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let ids = |list: &[NodeId]| list.iter().map(|id| id.0).collect();
        (ids(self.0.parameters()), ids(self.0.results()), ids(self.0.sinks()))
    }
    /// Runs the model once by the reference evaluation.
    fn evaluate(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Tensor>> {
        let tensors = inputs.iter().map(engine_tensor).collect::<PyResult<Vec<_>>>()?;
        let results = py.detach(|| self.0.evaluate(&tensors)).or_raise()?;
        results.into_iter().map(tensor_object).collect()
    }
}

// Symbols are numbered by the nodes of one model; in Python nodes of all models meet.
fn renumbered(fact: &Fact, instances: &HashMap<NodeId, u64>) -> GraphFact {
    let dim = |d: &Dim| match d.symbol() {
        None => *d,
        Some(symbol) => {
            let (node, index) = (symbol.0.wrapping_sub(1) / SYMBOLS, symbol.0.wrapping_sub(1) % SYMBOLS);
            let plain = Dim::range(d.min(), d.max());
            match instances.get(&NodeId(node)) {
                Some(&instance) => {
                    let number = (instance as u32).wrapping_mul(SYMBOLS).wrapping_add(index).wrapping_add(1);
                    plain.with_symbol(carafe::Symbol(number))
                }
                None => plain,
            }
        }
    };
    let shape = fact.shape.dims().map_or_else(PartialShape::dynamic, |dims| PartialShape::new(dims.iter().map(dim)));
    let content = match &fact.content {
        carafe::FactContent::Partial(dims) => carafe::FactContent::Partial(dims.iter().map(dim).collect()),
        other => other.clone(),
    };
    GraphFact(Fact { ty: fact.ty, shape, content })
}

/// The engine's model of a `Model` of Python, or of what already is one.
pub(crate) fn engine_model(object: &Bound<'_, PyAny>) -> PyResult<Arc<Model>> {
    if let Ok(model) = object.cast::<EngineModel>() {
        return Ok(model.get().0.clone());
    }
    let wrong = |_| {
        pyo3::exceptions::PyTypeError::new_err(format!(
            "expected a Model, found {}. Please provide a valid openvino.Model instance.",
            object.get_type()
        ))
    };
    let method = object.getattr("_engine").map_err(wrong)?;
    Ok(method.call0()?.cast_into::<EngineModel>()?.get().0.clone())
}

/// A `Model` of Python around a model of the engine, opened when somebody looks into it.
pub(crate) fn model_object<'py>(py: Python<'py>, model: Arc<Model>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "carafe._graph.model", "Model")?.call_method1("_of_engine", (EngineModel(model),))
}
