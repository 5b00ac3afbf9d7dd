//! One device at work. The first candidate that compiles is chosen; while an accelerator compiles in the background, a
//! host device may stand in. When an inference fails, the next candidate is compiled and, if it does better, takes over
//! for all requests. A model with variables stays where it began.

use super::choice::is_accelerator;
use super::{Candidate, Settings, all_failed, optimal_requests};
use crate::bindings::{Bindings, check_cancel, infer_for, is_devices_fault, not_inferred};
use carafe_device::{CancelFlag, CompiledModel, InferRequest, NodeProfile, Port};
use carafe_graph::{Error, Model, Result};
use carafe_tensor::Tensor;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) struct Compiled {
    name: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    settings: Settings,
    shared: Arc<Shared>,
}

/// What the background thread works on too.
struct Shared {
    model: Model,
    candidates: Vec<Candidate>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    slots: Vec<Slot>,
    current: usize,
    /// The current one only stands in until a better one is compiled.
    stands_in: bool,
}

#[derive(Clone)]
enum Slot {
    New,
    Compiling,
    Ready(Arc<dyn CompiledModel>),
    Failed(Error),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Compiles for a candidate once; who comes meanwhile waits for it.
    fn compiled(&self, i: usize) -> Result<Arc<dyn CompiledModel>> {
        let mut state = self.state();
        loop {
            match &state.slots[i] {
                Slot::Ready(compiled) => return Ok(compiled.clone()),
                Slot::Failed(e) => return Err(e.clone()),
                Slot::New => break,
                Slot::Compiling => state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner()),
            }
        }
        state.slots[i] = Slot::Compiling;
        drop(state);
        let mut done = Done { shared: self, i, slot: Slot::Failed(Error::invalid("the device panicked")) };
        let c = &self.candidates[i];
        let result = c.device.compile(&self.model, &c.properties);
        done.slot = match &result {
            Ok(compiled) => Slot::Ready(compiled.clone()),
            Err(e) => Slot::Failed(e.clone()),
        };
        result
    }

    fn make_current(&self, i: usize) {
        let mut state = self.state();
        (state.current, state.stands_in) = (i, false);
    }

    /// The first candidate that compiles and was not tried; those that are compiled already come first.
    fn another(&self, tried: &[usize]) -> Option<usize> {
        let slots = self.state().slots.clone();
        let mut order: Vec<usize> = (0..slots.len()).filter(|i| !tried.contains(i)).collect();
        carafe_graph::sort_by_key(&mut order, |&i| !matches!(slots[i], Slot::Ready(_)));
        order.into_iter().find(|&i| self.compiled(i).is_ok())
    }
}

/// Says how compiling ended, also when the device panicked.
struct Done<'a> {
    shared: &'a Shared,
    i: usize,
    slot: Slot,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.shared.state().slots[self.i] = self.slot.clone();
        self.shared.changed.notify_all();
    }
}

impl Compiled {
    pub(crate) fn new(
        model: &Model,
        candidates: Vec<Candidate>,
        settings: Settings,
        startup: bool,
    ) -> Result<Compiled> {
        let slots = vec![Slot::New; candidates.len()];
        let shared = Arc::new(Shared {
            model: model.clone(),
            candidates,
            state: Mutex::new(State { slots, current: 0, stands_in: false }),
            changed: Condvar::new(),
        });
        if !(startup && start_with_stand_in(&shared)) {
            start(&shared)?;
        }
        let (inputs, outputs) = (Port::inputs_of(model), Port::outputs_of(model));
        Ok(Compiled { name: model.name.clone(), inputs, outputs, settings, shared })
    }

    fn current(&self) -> Result<(usize, Arc<dyn CompiledModel>)> {
        let i = self.shared.state().current;
        Ok((i, self.shared.compiled(i)?))
    }
}

// In order, the first that compiles.
fn start(shared: &Shared) -> Result<()> {
    let mut failures = Vec::new();
    for (i, c) in shared.candidates.iter().enumerate() {
        match shared.compiled(i) {
            Ok(_) => {
                shared.make_current(i);
                return Ok(());
            }
            Err(e) => failures.push((c.name.clone(), e)),
        }
    }
    Err(all_failed(&failures))
}

// A host device at once, and those before it in the background. False when there is none to stand in or it fails.
fn start_with_stand_in(shared: &Arc<Shared>) -> bool {
    let candidates = &shared.candidates;
    if !is_accelerator(&*candidates[0].device) {
        return false;
    }
    let Some(host) = candidates.iter().position(|c| !is_accelerator(&*c.device)) else { return false };
    // Begin with the slow one; the host compiles beside it.
    let background = shared.clone();
    let thread = std::thread::Builder::new().name("carafe-auto".into()).spawn(move || {
        let better = (0..host).find(|&i| background.compiled(i).is_ok());
        // The host must have had its turn, or it would take the place of the better one.
        let stand_in = background.compiled(host).is_ok();
        if let Some(i) = better.or(stand_in.then_some(host)) {
            background.make_current(i);
        }
    });
    if thread.is_err() || shared.compiled(host).is_err() {
        return false;
    }
    let mut state = shared.state();
    // The background may have been quicker.
    if state.current == 0 && !matches!(state.slots[0], Slot::Ready(_)) {
        (state.current, state.stands_in) = (host, true);
    }
    true
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        self.current().map(|(_, c)| c.runtime_model()).unwrap_or_default()
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(self.settings.no_export())
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.name.clone()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "EXECUTION_DEVICES" => {
                let state = self.shared.state();
                let name = &self.shared.candidates[state.current].name;
                Ok(if state.stands_in { format!("({name})") } else { name.clone() })
            }
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => {
                let (i, compiled) = self.current()?;
                Ok(self.shared.candidates[i].count.unwrap_or_else(|| optimal_requests(&*compiled)).to_string())
            }
            _ => self.settings.property(name),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        let bound = Bindings::new(self.inputs.len(), self.outputs.len());
        let inner = match self.settings.stateful {
            true => self.current().ok().map(|(i, c)| (i, c.create_request())),
            false => None,
        };
        let cancel = CancelFlag::new();
        let given = BTreeSet::new();
        Box::new(Request { compiled: self, bound, given, inner, cancel, finished: false })
    }
}

struct Request {
    compiled: Arc<Compiled>,
    bound: Bindings,
    /// Outputs the user gave memory for. It lies with the inner request once there is one.
    given: BTreeSet<usize>,
    /// The request of the device that ran last.
    inner: Option<(usize, Box<dyn InferRequest>)>,
    cancel: CancelFlag,
    finished: bool,
}

impl Request {
    // Runs on one candidate, with a new inner request when the last one was another's.
    fn run_on(&mut self, i: usize) -> Result<()> {
        if self.inner.as_ref().is_none_or(|(at, _)| *at != i) {
            let mut inner = self.compiled.shared.compiled(i)?.create_request();
            let before = self.inner.take().map(|(_, r)| r);
            let memory: Vec<Option<Tensor>> =
                self.given.iter().map(|&o| before.as_ref()?.output(o).ok().cloned()).collect();
            drop(before);
            for (&o, memory) in self.given.iter().zip(memory) {
                if let Some(memory) = self.bound.take_target(o).or(memory) {
                    inner.set_output(o, memory)?;
                }
            }
            self.inner = Some((i, inner));
        }
        let inputs = self.bound.all_inputs(&self.compiled.inputs)?;
        check_cancel(&self.cancel)?;
        let Some((_, inner)) = &mut self.inner else { return Err(not_inferred()) };
        for (i, tensor) in inputs.into_iter().enumerate() {
            inner.set_input(i, tensor)?;
        }
        infer_for(&self.cancel, &mut **inner)
    }

    fn kept(&self) -> Result<&dyn InferRequest> {
        let no_state = || Error::not_found("the model has no variables");
        self.inner.as_ref().filter(|_| self.compiled.settings.stateful).map(|(_, r)| &**r).ok_or_else(no_state)
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
        self.bound.set_target(&self.compiled.outputs, index, tensor)?;
        self.given.insert(index);
        if let Some((_, inner)) = &mut self.inner
            && let Some(tensor) = self.bound.take_target(index)
        {
            inner.set_output(index, tensor)?;
        }
        Ok(())
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        self.run_stage(0)
    }
    fn run_stage(&mut self, _: usize) -> Result<()> {
        self.finished = false;
        let (stateful, fallback) = (self.compiled.settings.stateful, self.compiled.settings.runtime_fallback);
        let mut at = match &self.inner {
            Some((at, _)) if stateful => *at,
            _ => self.compiled.shared.state().current,
        };
        let (mut tried, mut first) = (Vec::new(), None);
        while let Err(e) = self.run_on(at) {
            if !is_devices_fault(&e) || stateful || !fallback {
                return Err(e);
            }
            let e = first.get_or_insert(e.at(format!("device `{}`", self.compiled.shared.candidates[at].name)));
            tried.push(at);
            match self.compiled.shared.another(&tried) {
                Some(next) => at = next,
                None => return Err(e.clone()),
            }
        }
        // Another device did what this one could not: it is the device's fault, not the input's.
        if !tried.is_empty() {
            self.compiled.shared.make_current(at);
        }
        self.finished = true;
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        match &self.inner {
            Some((_, inner)) if self.finished => inner.output(index),
            _ => Err(not_inferred()),
        }
    }
    fn profile(&self) -> Vec<NodeProfile> {
        self.inner.as_ref().map(|(_, r)| r.profile()).unwrap_or_default()
    }
    fn variables(&self) -> Vec<String> {
        self.kept().map(|r| r.variables()).unwrap_or_default()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.kept()?.variable(id)
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        self.kept()?;
        match &mut self.inner {
            Some((_, inner)) => inner.set_variable(id, value),
            None => Err(Error::not_found("the model has no variables")),
        }
    }
    fn reset_variables(&mut self) {
        if let Some((_, inner)) = &mut self.inner {
            inner.reset_variables();
        }
    }
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
