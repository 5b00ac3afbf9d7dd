//! All devices at work. Each has so many workers (requests of its own); an inference takes a free one, by priority or in
//! turn, and gives it back. Between inferences a user's request owns no worker, so there may be more requests than
//! workers.

use super::{Candidate, Settings, all_failed, optimal_requests};
use crate::bindings::{Bindings, check_cancel, infer_for, is_devices_fault, not_inferred};
use carafe_device::{CancelFlag, CompiledModel, InferRequest, NodeProfile, Port};
use carafe_graph::{Error, Model, Result};
use carafe_tensor::Tensor;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How often a waiting request looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Compiled {
    name: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    settings: Settings,
    members: Vec<Member>,
    in_turn: bool,
    state: Mutex<State>,
    freed: Condvar,
}

/// A device with its compiled model and its number of workers.
struct Member {
    name: String,
    compiled: Arc<dyn CompiledModel>,
    n_workers: usize,
}

struct State {
    free: Vec<Vec<Box<dyn InferRequest>>>,
    busy: Vec<usize>,
    /// It failed where another did not.
    failed: Vec<bool>,
    next: usize,
}

impl Compiled {
    pub(crate) fn new(model: &Model, candidates: Vec<Candidate>, settings: Settings) -> Result<Compiled> {
        let (mut members, mut failures) = (Vec::new(), Vec::new());
        for c in candidates {
            match c.device.compile(model, &c.properties) {
                Ok(compiled) => {
                    let n_workers = c.count.unwrap_or_else(|| optimal_requests(&*compiled));
                    members.push(Member { name: c.name, compiled, n_workers });
                }
                Err(e) => failures.push((c.name, e)),
            }
        }
        if members.is_empty() {
            return Err(all_failed(&failures));
        }
        let n = members.len();
        let policy = settings.property("SCHEDULE_POLICY")?;
        let (free, busy) = ((0..n).map(|_| Vec::new()).collect(), vec![0; n]);
        Ok(Compiled {
            name: model.name.clone(),
            inputs: Port::inputs_of(model),
            outputs: Port::outputs_of(model),
            in_turn: policy.trim().eq_ignore_ascii_case("ROUND_ROBIN"),
            settings,
            members,
            state: Mutex::new(State { free, busy, failed: vec![false; n], next: 0 }),
            freed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn n_workers(&self) -> usize {
        self.members.iter().map(|m| m.n_workers).sum()
    }

    /// A free worker of a device that was not tried; waits for one. `None` when all were tried.
    fn worker(&self, tried: &[usize], cancel: &CancelFlag) -> Result<Option<Worker<'_>>> {
        let mut state = self.state();
        let n = self.members.len();
        loop {
            check_cancel(cancel)?;
            let mut usable: Vec<usize> = (0..n).filter(|m| !tried.contains(m)).collect();
            if usable.is_empty() {
                return Ok(None);
            }
            // Devices that failed get work only when no other is left.
            if usable.iter().any(|&m| !state.failed[m]) {
                usable.retain(|&m| !state.failed[m]);
            }
            if self.in_turn {
                let first = state.next;
                carafe_graph::sort_by_key(&mut usable, |&m| (m + n - first % n) % n);
            }
            let found = usable.into_iter().find(|&m| state.busy[m] < self.members[m].n_workers);
            if let Some(m) = found {
                state.busy[m] += 1;
                state.next = (m + 1) % n;
                let free = state.free[m].pop();
                drop(state);
                let mut worker = Worker { from: self, member: m, request: None };
                worker.request = Some(free.unwrap_or_else(|| self.members[m].compiled.clone().create_request()));
                return Ok(Some(worker));
            }
            state = self.freed.wait_timeout(state, LOOK).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

/// A worker in use; dropping it gives it back.
struct Worker<'a> {
    from: &'a Compiled,
    member: usize,
    request: Option<Box<dyn InferRequest>>,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let mut state = self.from.state();
        state.busy[self.member] -= 1;
        // One that panicked is not used again.
        if let (Some(request), false) = (self.request.take(), std::thread::panicking()) {
            state.free[self.member].push(request);
        }
        drop(state);
        // Not all who wait may take this one, so all of them look.
        self.from.freed.notify_all();
    }
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    /// That of the first device.
    fn runtime_model(&self) -> Model {
        self.members.first().map(|m| m.compiled.runtime_model()).unwrap_or_default()
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(self.settings.no_export())
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.name.clone()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "EXECUTION_DEVICES" => Ok(self.members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(" ")),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok(self.n_workers().to_string()),
            "PERFORMANCE_HINT" => Ok(self.settings.properties.get(name).unwrap_or("CUMULATIVE_THROUGHPUT").to_string()),
            _ => self.settings.property(name),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request {
            bound: Bindings::new(self.inputs.len(), self.outputs.len()),
            outputs: vec![],
            profile: vec![],
            cancel: CancelFlag::new(),
            compiled: self,
        })
    }
}

struct Request {
    compiled: Arc<Compiled>,
    bound: Bindings,
    outputs: Vec<Tensor>,
    profile: Vec<NodeProfile>,
    cancel: CancelFlag,
}

impl Request {
    fn run_on(&mut self, worker: &mut Worker<'_>, inputs: &[Tensor]) -> Result<()> {
        let Some(request) = &mut worker.request else { return Err(not_inferred()) };
        for (i, tensor) in inputs.iter().enumerate() {
            request.set_input(i, tensor.clone())?;
        }
        infer_for(&self.cancel, &mut **request)?;
        let mut outputs = Vec::with_capacity(self.compiled.outputs.len());
        for i in 0..self.compiled.outputs.len() {
            outputs.push(self.bound.handed_out(i, request.output(i)?.clone())?);
        }
        (self.outputs, self.profile) = (outputs, request.profile());
        Ok(())
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
        self.bound.set_target(&self.compiled.outputs, index, tensor)
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        self.run_stage(0)
    }
    fn run_stage(&mut self, _: usize) -> Result<()> {
        self.outputs.clear();
        let inputs = self.bound.all_inputs(&self.compiled.inputs)?;
        let compiled = self.compiled.clone();
        let (mut tried, mut first): (Vec<usize>, Option<Error>) = (Vec::new(), None);
        loop {
            let Some(mut worker) = compiled.worker(&tried, &self.cancel)? else {
                return Err(first.unwrap_or_else(not_inferred));
            };
            let member = worker.member;
            let Err(e) = self.run_on(&mut worker, &inputs) else { break };
            if !is_devices_fault(&e) {
                return Err(e);
            }
            // A worker that failed may be in no good state.
            worker.request = None;
            let e = e.at(format!("device `{}`", compiled.members[member].name));
            if !compiled.settings.runtime_fallback {
                return Err(e);
            }
            first.get_or_insert(e);
            tried.push(member);
        }
        if !tried.is_empty() {
            let mut state = compiled.state();
            tried.into_iter().for_each(|m| state.failed[m] = true);
        }
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.outputs.get(index).ok_or_else(|| match self.outputs.is_empty() {
            true => not_inferred(),
            false => Error::not_found(format!("the model has no output {index}")),
        })
    }
    fn profile(&self) -> Vec<NodeProfile> {
        self.profile.clone()
    }
    fn variables(&self) -> Vec<String> {
        vec![]
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        Err(Error::not_found(format!("no variable `{id}`; the model has none")))
    }
    fn set_variable(&mut self, id: &str, _: Tensor) -> Result<()> {
        self.variable(id).map(|_| ())
    }
    fn reset_variables(&mut self) {}
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
