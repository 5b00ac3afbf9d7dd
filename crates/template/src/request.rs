//! An inference request: bound inputs, outputs of the last run, variables.

use crate::compiled::Compiled;
use carafe_device::{InferRequest, NodeProfile, NodeStatus};
use carafe_graph::{Constant, Error, EvalEnv, Parameter, Result, ResultOp, run};
use carafe_tensor::Tensor;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(crate) struct Request {
    compiled: Arc<Compiled>,
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    env: EvalEnv,
    cancel: Arc<AtomicBool>,
}

impl Request {
    pub(crate) fn new(compiled: Arc<Compiled>) -> Request {
        let cancel = Arc::new(AtomicBool::new(false));
        let mut env = EvalEnv::default();
        env.cancel = Some(cancel.clone());
        Request { inputs: vec![None; compiled.inputs.len()], outputs: vec![], env, cancel, compiled }
    }
}

impl InferRequest for Request {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = self.compiled.inputs.get(index);
        let port = port.ok_or_else(|| Error::not_found(format!("the model has no input {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        self.inputs[index] = Some(tensor);
        Ok(())
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index)?.as_ref()
    }
    fn infer(&mut self) -> Result<()> {
        let unset = self.inputs.iter().position(Option::is_none);
        if let Some(i) = unset {
            return Err(Error::usage(format!("input `{}` has no tensor", self.compiled.inputs[i].name)));
        }
        self.cancel.store(false, Ordering::Relaxed);
        self.env.profile = self.compiled.profiled.then(HashMap::new);
        let inputs: Vec<Tensor> = self.inputs.iter().flatten().cloned().collect();
        self.outputs = run(&self.compiled.model, &inputs, &mut self.env)?;
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.outputs.get(index).ok_or_else(|| match self.outputs.is_empty() {
            true => Error::usage("nothing was inferred yet"),
            false => Error::not_found(format!("the model has no output {index}")),
        })
    }
    fn profile(&self) -> Vec<NodeProfile> {
        let Some(times) = &self.env.profile else { return vec![] };
        let model = &self.compiled.model;
        let row = |id| {
            let node = model.node(id);
            let op = node.op();
            let still = op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>();
            let time = times.get(&id).copied().unwrap_or_default();
            let status = match (still, times.contains_key(&id)) {
                (true, _) => NodeStatus::OptimizedOut,
                (false, true) => NodeStatus::Executed,
                (false, false) => NodeStatus::NotRun,
            };
            NodeProfile {
                name: node.name().to_string(),
                type_name: op.type_name().to_string(),
                kernel: "reference".into(),
                status,
                real_time: time,
                // One thread does the work, so both times are the same.
                cpu_time: time,
            }
        };
        model.topological_order().unwrap_or_default().into_iter().map(row).collect()
    }
    fn variables(&self) -> Vec<String> {
        let ids: BTreeSet<String> = self
            .compiled
            .model
            .nodes()
            .filter(|(_, n)| n.op().info().stateful)
            .filter_map(|(_, n)| n.op().attrs().into_iter().find(|(k, _)| k == "variable_id")?.1.to_text())
            .collect();
        ids.into_iter().collect()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.known(id)?;
        Ok(self.env.variables.get(id).cloned())
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        self.known(id)?;
        self.env.variables.insert(id.to_string(), value);
        Ok(())
    }
    fn reset_variables(&mut self) {
        self.env.variables.clear();
    }
    fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }
}

impl Request {
    fn known(&self, id: &str) -> Result<()> {
        let ids = self.variables();
        match ids.iter().any(|v| v == id) {
            true => Ok(()),
            false => Err(Error::not_found(format!("no variable `{id}`; the model has: {}", ids.join(", ")))),
        }
    }
}
