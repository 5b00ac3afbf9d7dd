//! An inference request of any backend: bound inputs, its memory, outputs of the last run, variables.

use crate::backend::Backend;
use crate::bodies::Bodies;
use crate::plan::Plan;
use crate::planner::Planner;
use crate::report::profile;
use crate::run::{RunCx, RunMemory, run};
use crate::streams::Streams;
use carafe_device::{CancelFlag, InferRequest, NodeProfile, Port};
use carafe_graph::{Error, EvalEnv, Result};
use carafe_tensor::Tensor;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a request needs of the compiled model that it is of.
pub trait Prepared<B: Backend>: std::fmt::Debug + Send + Sync {
    /// Its plans.
    fn planner(&self) -> &Arc<Planner<B>>;
    /// What the model takes.
    fn inputs(&self) -> &[Port];
    /// What it gives.
    fn outputs(&self) -> &[Port];
    /// What inferences run on.
    fn streams(&self) -> &Arc<Streams<B::Stream>>;
    /// Whether times of steps are kept.
    fn is_profiled(&self) -> bool;
}

/// A request.
#[derive(Debug)]
pub struct Request<B: Backend> {
    compiled: Arc<dyn Prepared<B>>,
    inputs: Vec<Option<Tensor>>,
    /// The bound inputs once all are there, in the form that a run takes.
    bound: Vec<Tensor>,
    /// Memory the user gave for outputs.
    targets: Vec<Option<Tensor>>,
    memory: RunMemory<B>,
    /// The plan of the last inference; `None` before the first.
    plan: Option<Arc<Plan<B>>>,
    inferred: bool,
    bodies: Arc<Bodies<B>>,
    env: EvalEnv,
    cancel: CancelFlag,
}

impl<B: Backend> Request<B> {
    /// Of a compiled model, without inputs yet.
    pub fn new(compiled: Arc<dyn Prepared<B>>) -> Request<B> {
        let cancel = CancelFlag::new();
        let mut env = EvalEnv::default();
        env.cancel = Some(cancel.plain());
        let bodies = Arc::new(Bodies::new(compiled.planner().clone()));
        env.bodies = Some(bodies.clone());
        let (inputs, targets) = (vec![None; compiled.inputs().len()], vec![None; compiled.outputs().len()]);
        let memory = RunMemory::default();
        Request { inputs, bound: vec![], targets, memory, plan: None, inferred: false, bodies, env, cancel, compiled }
    }

    fn run(&mut self) -> Result<()> {
        if let Some(i) = self.inputs.iter().position(Option::is_none) {
            return Err(Error::usage(format!("input `{}` has no tensor", self.compiled.inputs()[i].name)));
        }
        self.inferred = false;
        self.bound.clear();
        self.bound.extend(self.inputs.iter().flatten().cloned());
        self.take_targets();
        let plan = self.plan_now()?;
        let cancel = self.cancel.plain();
        let lease = self.compiled.streams().lease(&cancel)?;
        self.bodies.use_stream(lease.stream());
        let mut cx = RunCx {
            planner: self.compiled.planner(),
            stream: lease.stream(),
            inputs: &self.bound,
            memory: &mut self.memory,
            env: &mut self.env,
            profiled: self.compiled.is_profiled(),
            leaves: false,
        };
        run(&plan, &mut cx)?;
        self.bound.clear();
        self.hand_out()?;
        self.inferred = true;
        Ok(())
    }

    // The plan of the last inference while the shapes stay, otherwise the one for the new shapes.
    fn plan_now(&mut self) -> Result<Arc<Plan<B>>> {
        if let Some(plan) = self.plan.as_ref().filter(|plan| plan.suits(&self.bound)) {
            return Ok(plan.clone());
        }
        let plan = self.compiled.planner().plan(&self.bound)?;
        self.plan = Some(plan.clone());
        Ok(plan)
    }

    // Memory that the user gave and shares with nobody is written where it is, and so is memory of the device.
    fn take_targets(&mut self) {
        let outputs = &mut self.memory.outputs;
        let there = outputs.len();
        outputs.resize_with(there.max(self.targets.len()), || Tensor::scalar(0f32));
        for (i, (target, slot)) in self.targets.iter_mut().zip(outputs).enumerate() {
            let Some(given) = target else { continue };
            if given.remote_memory().is_some() {
                *slot = given.clone();
            } else if i < there {
                // The output of the last inference may be the same memory; that is no other holder.
                if slot.remote_memory().is_none() && slot.storage_ptr() == given.storage_ptr() {
                    *slot = Tensor::scalar(0f32);
                }
                if given.unique_bytes_mut().is_some() {
                    *slot = given.clone();
                    *target = None;
                }
            }
        }
    }

    // What the user gave memory for moves there; where the memory is shared or has another size, the output keeps its own.
    fn hand_out(&mut self) -> Result<()> {
        for (output, target) in self.memory.outputs.iter_mut().zip(&mut self.targets) {
            let Some(mut given) = target.take() else { continue };
            let same = |a: &Tensor, b: &Tensor| match (a.remote_memory(), b.remote_memory()) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            };
            if same(&given, output) {
                // It is there.
            } else if given.element_type() == output.element_type() && given.shape() == output.shape() {
                given.copy_elements(0, output, 0, output.len())?;
                *output = given.clone();
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

impl<B: Backend> InferRequest for Request<B> {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = self.compiled.inputs().get(index);
        let port = port.ok_or_else(|| Error::not_found(format!("the model has no input {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        self.inputs[index] = Some(tensor);
        Ok(())
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index)?.as_ref()
    }
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = self.compiled.outputs().get(index);
        let port = port.ok_or_else(|| Error::not_found(format!("the model has no output {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        if let (Some(output), true) = (self.memory.outputs.get_mut(index), self.inferred) {
            *output = tensor.clone();
        }
        self.targets[index] = Some(tensor);
        Ok(())
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        self.run()
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        debug_assert_eq!(stage, 0, "there is one stage");
        self.run()
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        if !self.inferred {
            return Err(Error::usage("nothing was inferred yet"));
        }
        self.memory.outputs.get(index).ok_or_else(|| Error::not_found(format!("the model has no output {index}")))
    }
    fn profile(&self) -> Vec<NodeProfile> {
        match self.plan.as_ref().filter(|_| self.compiled.is_profiled() && self.inferred) {
            Some(plan) => profile(&self.compiled.planner().model, plan, &self.memory),
            None => vec![],
        }
    }
    fn variables(&self) -> Vec<String> {
        let ids: BTreeSet<String> = self
            .compiled
            .planner()
            .model
            .nodes()
            .filter(|(_, n)| n.op().info().stateful)
            .filter_map(|(_, n)| n.op().attrs().into_iter().find(|(k, _)| k == "variable_id")?.1.to_text())
            .collect();
        ids.into_iter().collect()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.known(id)?;
        Ok(self.env.variables.get(id).map(Tensor::to_host).transpose()?)
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
