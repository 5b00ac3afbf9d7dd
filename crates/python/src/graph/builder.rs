//! Puts a model of the engine together, node by node.

use super::model::EngineModel;
use super::op::GraphOp;
use super::rt_info::{self, Attribute};
use crate::errors::{OrRaise, failure};
use carafe::{Model, NodeId, Value};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// A model that is being made.
#[pyclass(name = "ModelBuilder", module = "carafe._native", frozen)]
pub(crate) struct ModelBuilder(Mutex<Model>);

type NodeInfo<'py> = (Vec<Attribute>, Bound<'py, PyAny>);
type PortInfo<'py> = (usize, Vec<Attribute>, Bound<'py, PyAny>);

#[pymethods]
impl ModelBuilder {
    #[new]
    fn new(name: &str) -> ModelBuilder {
        ModelBuilder(Mutex::new(Model::new(name)))
    }

    /// Adds a node whose producers are there; its number.
    #[expect(clippy::too_many_arguments, reason = "all that a node has")]
    fn add<'py>(
        &self,
        py: Python<'py>,
        op: &GraphOp,
        name: &str,
        inputs: Vec<(u32, usize)>,
        names: Vec<(usize, Vec<String>)>,
        info: Option<NodeInfo<'py>>,
        output_info: Vec<PortInfo<'py>>,
        input_info: Vec<PortInfo<'py>>,
    ) -> PyResult<u32> {
        let inputs: Vec<Value> = inputs.into_iter().map(|(id, port)| Value { node: NodeId(id), port }).collect();
        let op = op.0.clone();
        // An operation that is written in Python runs while the model is locked, so the lock is not held while it waits for Python.
        let mut model = std::mem::take(&mut *self.lock());
        let added = py.detach(|| model.add_ref(name, op, &inputs));
        let added = added.or_raise();
        let id = match added {
            Ok(id) => id,
            Err(e) => {
                *self.lock() = model;
                return Err(e);
            }
        };
        for (port, names) in names {
            if port < model.node(id).outputs().len() {
                model.set_tensor_names(Value { node: id, port }, names.into_iter().collect());
            }
        }
        if let Some((attributes, tree)) = info {
            *model.rt_info_mut(id) = rt_info::of_python(attributes, &tree)?;
        }
        for (port, attributes, tree) in output_info {
            if port < model.node(id).outputs().len() {
                *model.output_rt_info_mut(Value { node: id, port }) = rt_info::of_python(attributes, &tree)?;
            }
        }
        for (port, attributes, tree) in input_info {
            model.set_input_rt_info(id, port, rt_info::of_python(attributes, &tree)?);
        }
        *self.lock() = model;
        Ok(id.0)
    }

    /// The model with its inputs and outputs in this order.
    fn finish(&self, parameters: Vec<u32>, results: Vec<u32>, tree: &Bound<'_, PyAny>) -> PyResult<EngineModel> {
        let mut model = std::mem::take(&mut *self.lock());
        let order = |ids: Vec<u32>, all: &[NodeId], what: &str| -> PyResult<Vec<NodeId>> {
            let ids: Vec<NodeId> = ids.into_iter().map(NodeId).collect();
            match ids.len() == all.len() && all.iter().all(|id| ids.contains(id)) {
                true => Ok(ids),
                false => Err(failure(format!("the model has {} {what}, {} are listed", all.len(), ids.len()))),
            }
        };
        let parameters = order(parameters, model.parameters(), "parameters")?;
        model.order_parameters(parameters);
        let results = order(results, model.results(), "results")?;
        model.order_results(results);
        model.rt_info = rt_info::tree_of_python(tree)?;
        Ok(EngineModel(Arc::new(model)))
    }
}

impl ModelBuilder {
    fn lock(&self) -> std::sync::MutexGuard<'_, Model> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
