//! One inference over the sub-models, in order. Tensors between them are handed over, not copied. Whoever runs stages one
//! by one sees the stages of all parts, each on an executor of its device, so that several requests overlap.

use super::TABLE;
use super::compiled::Compiled;
use super::split::Source;
use crate::bindings::{Bindings, check_cancel, not_inferred};
use carafe_device::{CancelFlag, InferRequest, NodeProfile, NodeStatus, Stage};
use carafe_graph::{Error, ErrorKind, Result};
use carafe_tensor::Tensor;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Request {
    compiled: Arc<Compiled>,
    subs: Vec<Box<dyn InferRequest>>,
    /// Memory only for outputs that no part computes; the parts have theirs.
    bound: Bindings,
    /// Outputs that no part computes, once they are there.
    passed: Vec<Option<Tensor>>,
    steps: Vec<Step>,
    cancel: CancelFlag,
    finished: bool,
    /// What each part took in the last inference.
    times: Vec<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Check,
    /// A stage of a part.
    Sub(usize, usize),
    HandOut,
}

impl Request {
    pub(crate) fn new(compiled: Arc<Compiled>) -> Request {
        let subs: Vec<_> = compiled.subs.iter().map(|s| s.compiled.clone().create_request()).collect();
        let mut steps = vec![Step::Check];
        for (i, sub) in subs.iter().enumerate() {
            steps.extend((0..sub.stages().len()).map(|stage| Step::Sub(i, stage)));
        }
        steps.push(Step::HandOut);
        let (n_in, n_out) = (compiled.inputs.len(), compiled.outputs.len());
        Request {
            times: vec![Duration::ZERO; subs.len()],
            subs,
            bound: Bindings::new(n_in, n_out),
            passed: vec![None; n_out],
            steps,
            cancel: CancelFlag::new(),
            finished: false,
            compiled,
        }
    }

    fn check(&mut self) -> Result<()> {
        self.finished = false;
        self.times.fill(Duration::ZERO);
        self.passed.fill(None);
        self.bound.all_inputs(&self.compiled.inputs).map(|_| ())
    }

    // Binds what the part reads; called before its first stage.
    fn bind(&mut self, sub: usize) -> Result<()> {
        for (i, source) in self.compiled.subs[sub].sources.iter().enumerate() {
            let tensor = match *source {
                Source::Input(i) => self.bound.input(i).cloned(),
                Source::Sub { sub, port } => Some(self.subs[sub].output(port)?.clone()),
                Source::Constant(c) => Some(self.compiled.constants[c].clone()),
            };
            let tensor = tensor.ok_or_else(|| Error::usage("an input has no tensor"))?;
            self.subs[sub].set_input(i, tensor)?;
        }
        Ok(())
    }

    fn run_sub(&mut self, sub: usize, stage: usize) -> Result<()> {
        if stage == 0 {
            self.bind(sub).map_err(|e| self.at(sub, e))?;
            self.subs[sub].cancel_flag().clear();
        }
        let _leading = self.cancel.lead(&self.subs[sub].cancel_flag());
        let start = Instant::now();
        let done = self.subs[sub].run_stage(stage);
        self.times[sub] += start.elapsed();
        done.map_err(|e| self.at(sub, e))
    }

    fn hand_out(&mut self) -> Result<()> {
        for (i, source) in self.compiled.sources.iter().enumerate() {
            let tensor = match *source {
                Source::Input(i) => self.bound.input(i).cloned(),
                Source::Constant(c) => Some(self.compiled.constants[c].clone()),
                Source::Sub { .. } => continue,
            };
            self.passed[i] = tensor.map(|t| self.bound.handed_out(i, t)).transpose()?;
        }
        self.finished = true;
        Ok(())
    }

    fn at(&self, sub: usize, e: Error) -> Error {
        if e.kind() == ErrorKind::Cancelled {
            return e;
        }
        let sub = &self.compiled.subs[sub];
        e.at(format!("sub-model `{}` on device `{}`", sub.name, sub.device))
    }

    // A part on a device that gives no times of its nodes, as one row that was measured here.
    fn whole_part(&self, sub: usize, device: &str) -> NodeProfile {
        let (status, time) = match self.finished {
            true => (NodeStatus::Executed, self.times[sub]),
            false => (NodeStatus::NotRun, Duration::ZERO),
        };
        NodeProfile {
            name: format!("subgraph{sub}"),
            type_name: "Subgraph".into(),
            kernel: format!("{device} as a whole"),
            status,
            real_time: time,
            cpu_time: time,
        }
    }

    fn owner_of(&self, id: &str) -> Result<usize> {
        let owner = self.subs.iter().position(|s| s.variables().iter().any(|v| v == id));
        owner.ok_or_else(|| {
            Error::not_found(format!("no variable `{id}`; the model has: {}", self.variables().join(", ")))
        })
    }
}

impl InferRequest for Request {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        self.bound.set_input(&self.compiled.inputs, index, tensor)
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.bound.input(index)
    }
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        match self.compiled.sources.get(index) {
            Some(&Source::Sub { sub, port }) => {
                self.compiled.outputs[index].check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
                self.subs[sub].set_output(port, tensor)
            }
            _ => self.bound.set_target(&self.compiled.outputs, index, tensor),
        }
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        for stage in 0..self.steps.len() {
            self.run_stage(stage)?;
        }
        Ok(())
    }
    fn stages(&self) -> Vec<Stage> {
        let host = |name: &str| Stage { name: name.into(), executor: "host".into() };
        let mut stages = vec![host("check inputs")];
        for (i, (sub, part)) in self.subs.iter().zip(&self.compiled.subs).enumerate() {
            stages.extend(sub.stages().into_iter().map(|s| Stage {
                name: format!("subgraph{i}: {}", s.name),
                executor: format!("{}/{}", part.device, s.executor),
            }));
        }
        stages.push(host("hand out"));
        stages
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        check_cancel(&self.cancel)?;
        match self.steps.get(stage) {
            Some(Step::Check) => self.check(),
            Some(&Step::Sub(sub, stage)) => self.run_sub(sub, stage),
            Some(Step::HandOut) => self.hand_out(),
            None => Err(Error::usage(format!("an inference has {} stages, found {stage}", self.steps.len()))),
        }
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        let source = self.compiled.sources.get(index);
        let source = source.ok_or_else(|| Error::not_found(format!("the model has no output {index}")))?;
        if !self.finished {
            return Err(not_inferred());
        }
        match *source {
            Source::Sub { sub, port } => self.subs[sub].output(port),
            _ => self.passed[index].as_ref().ok_or_else(not_inferred),
        }
    }
    fn profile(&self) -> Vec<NodeProfile> {
        let mut rows = Vec::new();
        let asked = self.compiled.properties.is_on(TABLE, "PERF_COUNT");
        for (i, (sub, part)) in self.subs.iter().zip(&self.compiled.subs).enumerate() {
            let named = |p: NodeProfile| NodeProfile { name: format!("subgraph{i}: {}", p.name), ..p };
            let own = sub.profile();
            if own.is_empty() && asked {
                rows.push(self.whole_part(i, &part.device));
            }
            rows.extend(own.into_iter().map(named));
        }
        rows
    }
    fn variables(&self) -> Vec<String> {
        self.subs.iter().flat_map(|s| s.variables()).collect()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.subs[self.owner_of(id)?].variable(id)
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        let owner = self.owner_of(id)?;
        self.subs[owner].set_variable(id, value)
    }
    fn reset_variables(&mut self) {
        self.subs.iter_mut().for_each(|s| s.reset_variables());
    }
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
