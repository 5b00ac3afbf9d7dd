//! An inference request: bound inputs, outputs of the last run, variables.

use crate::compiled::{Compiled, kernel_of};
use carafe_device::{CancelFlag, InferRequest, NodeProfile, NodeStatus, Stage};
use carafe_graph::{Constant, Error, EvalEnv, Parameter, Result, ResultOp, run};
use carafe_tensor::Tensor;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Steps of one inference, and the executor of each.
const STAGES: &[(&str, &str)] = &[("check inputs", "host"), ("evaluate", "device"), ("hand out", "host")];

#[derive(Debug)]
pub(crate) struct Request {
    compiled: Arc<Compiled>,
    inputs: Vec<Option<Tensor>>,
    /// Memory the user gave for outputs.
    targets: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    env: EvalEnv,
    cancel: CancelFlag,
}

impl Request {
    pub(crate) fn new(compiled: Arc<Compiled>) -> Request {
        let cancel = CancelFlag::new();
        let mut env = EvalEnv::default();
        env.cancel = Some(cancel.plain());
        let (inputs, targets) = (vec![None; compiled.inputs.len()], vec![None; compiled.outputs.len()]);
        Request { inputs, targets, outputs: vec![], env, cancel, compiled }
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
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = self.compiled.outputs.get(index);
        let port = port.ok_or_else(|| Error::not_found(format!("the model has no output {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        if let Some(output) = self.outputs.get_mut(index) {
            *output = tensor.clone();
        }
        self.targets[index] = Some(tensor);
        Ok(())
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        for stage in 0..STAGES.len() {
            self.run_stage(stage)?;
        }
        Ok(())
    }
    fn stages(&self) -> Vec<Stage> {
        STAGES.iter().map(|(name, executor)| Stage { name: (*name).into(), executor: (*executor).into() }).collect()
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        match stage {
            0 => self.check_inputs(),
            1 => self.evaluate(),
            _ => self.hand_out(),
        }
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
                kernel: kernel_of(model, id),
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
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}

impl Request {
    fn check_inputs(&mut self) -> Result<()> {
        match self.inputs.iter().position(Option::is_none) {
            Some(i) => Err(Error::usage(format!("input `{}` has no tensor", self.compiled.inputs[i].name))),
            None => Ok(()),
        }
    }
    fn evaluate(&mut self) -> Result<()> {
        self.env.profile = self.compiled.profiled.then(HashMap::new);
        let inputs: Vec<Tensor> = self.inputs.iter().flatten().cloned().collect();
        self.outputs.clear();
        self.outputs = run(&self.compiled.model, &inputs, &mut self.env)?;
        Ok(())
    }
    // What the user gave memory for moves there; where the memory is shared, cannot be written or has another size, the
    // output keeps its own.
    fn hand_out(&mut self) -> Result<()> {
        for (output, target) in self.outputs.iter_mut().zip(&mut self.targets) {
            let Some(mut memory) = target.take() else { continue };
            if memory.element_type() == output.element_type() && memory.shape() == output.shape() {
                memory.copy_elements(0, output, 0, output.len())?;
                *output = memory.clone();
            }
            *target = Some(output.clone());
        }
        Ok(())
    }
    fn known(&self, id: &str) -> Result<()> {
        let ids = self.variables();
        match ids.iter().any(|v| v == id) {
            true => Ok(()),
            false => Err(Error::not_found(format!("no variable `{id}`; the model has: {}", ids.join(", ")))),
        }
    }
}
