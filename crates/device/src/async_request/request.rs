//! A request that runs in the background. The device's request lies in its slot while nobody runs it and is taken out by
//! the stage that does; between start and end every access is refused as busy. The request is idle again before its
//! callback runs, and a run counts as ended for `wait` when its callback has returned.

use super::callback::{Callback, Slot};
use super::executor::{Queue, on_an_executor};
use super::ticket::Ticket;
use super::{Executor, Executors, cancelled, lock};
use crate::{CancelFlag, InferRequest, NodeProfile};
use carafe_graph::{Error, ErrorKind, Result, panicked};
use carafe_tensor::Tensor;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::Duration;

/// The owner of a request; everything it can do is on the handle it dereferences to. Dropping it cancels what runs, waits
/// until neither a stage nor a callback of it runs any more, and drops the callback uncalled; so hold no lock meanwhile that
/// the callback takes. On a thread of an executor (inside a callback) dropping does not wait for callbacks.
#[derive(Debug)]
pub struct AsyncInferRequest {
    handle: RequestHandle,
    /// Joined when the last owner goes; the tasks in them hold their queues only.
    _executors: Vec<Arc<Executor>>,
}

/// A request as callbacks and other threads use it. When its owner is gone every call is refused. A callback that needs
/// its own request uses the handle it is given: one that keeps the owner keeps itself alive for ever.
#[derive(Clone)]
pub struct RequestHandle {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// A stage or a callback has ended.
    quiet: Condvar,
    /// One for each stage.
    stages: Vec<Queue>,
    callbacks: Queue,
    cancel: CancelFlag,
}

struct State {
    phase: Phase,
    /// `None` while a stage runs, and after the owner is gone.
    request: Option<Box<dyn InferRequest>>,
    /// Who runs a stage now.
    running: Option<ThreadId>,
    callback: Slot,
    /// Who runs the callback now.
    calling: Option<ThreadId>,
    newest: Option<Arc<Ticket>>,
    dropped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    /// Asked to stop; still running.
    Cancelled,
    /// All stages are done, the callback is queued.
    Ending,
}

impl AsyncInferRequest {
    /// A request of a device on these executors.
    pub fn new(request: Box<dyn InferRequest>, executors: &Executors) -> AsyncInferRequest {
        let mut used: Vec<_> = request.stages().iter().map(|s| executors.stage(&s.executor)).collect();
        let callbacks = executors.callback();
        let shared = Shared {
            stages: used.iter().map(|e| e.queue()).collect(),
            callbacks: callbacks.queue(),
            cancel: request.cancel_flag(),
            quiet: Condvar::new(),
            state: Mutex::new(State {
                phase: Phase::Idle,
                request: Some(request),
                running: None,
                callback: Slot::Empty,
                calling: None,
                newest: None,
                dropped: false,
            }),
        };
        used.push(callbacks);
        AsyncInferRequest { handle: RequestHandle { shared: Arc::new(shared) }, _executors: used }
    }

    /// A further handle, for other threads.
    pub fn handle(&self) -> RequestHandle {
        self.handle.clone()
    }
}

impl Deref for AsyncInferRequest {
    type Target = RequestHandle;
    fn deref(&self) -> &RequestHandle {
        &self.handle
    }
}

impl Drop for AsyncInferRequest {
    fn drop(&mut self) {
        let shared = &self.handle.shared;
        let mut state = lock(&shared.state);
        state.dropped = true;
        if state.phase == Phase::Running {
            state.phase = Phase::Cancelled;
        }
        shared.cancel.set();
        let callback = state.callback.replace(None);
        // A callback must not wait for callbacks: theirs may be queued behind it, or wait for it in turn.
        let inside = on_an_executor();
        let me = std::thread::current().id();
        while state.running.is_some_and(|t| t != me) || (state.calling.is_some() && !inside) {
            state = shared.quiet.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        let request = state.request.take();
        drop(state);
        drop((callback, request));
    }
}

impl RequestHandle {
    /// Sets what is called when a run started by `start_async` has ended, on a thread for callbacks.
    pub fn set_callback(&self, callback: impl FnMut(Option<&Error>, &RequestHandle) + Send + 'static) -> Result<()> {
        self.replace_callback(Some(Box::new(callback)))
    }

    /// No callback from now on.
    pub fn clear_callback(&self) -> Result<()> {
        self.replace_callback(None)
    }

    fn replace_callback(&self, callback: Option<Callback>) -> Result<()> {
        let mut state = self.idle()?;
        let old = state.callback.replace(callback);
        drop(state);
        drop(old);
        Ok(())
    }

    /// Starts an inference and returns. Inside a callback the own request may be started again.
    pub fn start_async(&self) -> Result<()> {
        // Once begun, a run must be able to reach its end.
        self.shared.stages.iter().try_for_each(Queue::start)?;
        if lock(&self.shared.state).callback.is_set() {
            self.shared.callbacks.start()?;
        }
        let ticket = self.begin()?;
        self.shared.submit(0, &ticket);
        Ok(())
    }

    /// Runs on the calling thread; the callback is not called.
    pub fn infer(&self) -> Result<()> {
        let ticket = self.begin()?;
        for stage in 0..self.shared.stages.len() {
            if let Err(e) = self.shared.run_stage(stage) {
                return self.shared.settle(&ticket, Err(e));
            }
        }
        self.shared.settle(&ticket, Ok(()))
    }

    fn begin(&self) -> Result<Arc<Ticket>> {
        let mut state = self.idle()?;
        let ticket = Arc::new(Ticket::default());
        state.newest = Some(ticket.clone());
        state.phase = Phase::Running;
        self.shared.cancel.clear();
        Ok(ticket)
    }

    /// Waits for the end of the newest run and of its callback and gives its error; returns at once when nothing was ever
    /// started.
    pub fn wait(&self) -> Result<()> {
        let state = lock(&self.shared.state);
        let Some(ticket) = state.newest.clone() else { return Ok(()) };
        if let Some(outcome) = ticket.outcome() {
            return outcome;
        }
        let needs_this_thread = state.callback.is_set() || state.calling == Some(std::thread::current().id());
        if needs_this_thread && self.shared.callbacks.is_current() {
            return Err(Error::usage("waiting inside a callback for a run that ends with a callback would never end"));
        }
        drop(state);
        ticket.wait()
    }

    /// As `wait`, for at most this time: false when the run has not ended by then, and when nothing was ever started.
    pub fn wait_for(&self, time: Duration) -> Result<bool> {
        let Some(ticket) = lock(&self.shared.state).newest.clone() else { return Ok(false) };
        match ticket.wait_for(time) {
            Some(outcome) => outcome.map(|()| true),
            None => Ok(false),
        }
    }

    /// Asks a running inference to stop; `wait` and the callback then get an error of kind `Cancelled`, also where the
    /// device did not stop in time. A request that is idle, or whose stages are all done, is left alone.
    pub fn cancel(&self) {
        let mut state = lock(&self.shared.state);
        if state.phase == Phase::Running {
            state.phase = Phase::Cancelled;
            self.shared.cancel.set();
        }
    }

    /// The flag that stops the device, for a watcher that must not wait for the request itself.
    pub fn cancel_flag(&self) -> CancelFlag {
        self.shared.cancel.clone()
    }

    /// Whether a run has not come to its end yet. False inside the callback.
    pub fn is_busy(&self) -> bool {
        lock(&self.shared.state).phase != Phase::Idle
    }

    /// Binds a tensor without copying it.
    pub fn set_input(&self, index: usize, tensor: Tensor) -> Result<()> {
        self.with(|r| r.set_input(index, tensor))?
    }
    /// The tensor that is bound to an input.
    pub fn input(&self, index: usize) -> Result<Option<Tensor>> {
        self.with(|r| r.input(index).cloned())
    }
    /// Gives the memory that an output goes to.
    pub fn set_output(&self, index: usize, tensor: Tensor) -> Result<()> {
        self.with(|r| r.set_output(index, tensor))?
    }
    /// Output of the last inference; shares its memory.
    pub fn output(&self, index: usize) -> Result<Tensor> {
        self.with(|r| r.output(index).cloned())?
    }
    /// Times of the last inference; empty unless `PERF_COUNT` is on.
    pub fn profile(&self) -> Result<Vec<NodeProfile>> {
        self.with(|r| r.profile())
    }
    /// Ids of the variables.
    pub fn variables(&self) -> Result<Vec<String>> {
        self.with(|r| r.variables())
    }
    /// What a variable holds; `None` before the first assignment and after a reset.
    pub fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.with(|r| r.variable(id))?
    }
    /// Sets what the next inference reads of a variable.
    pub fn set_variable(&self, id: &str, value: Tensor) -> Result<()> {
        self.with(|r| r.set_variable(id, value))?
    }
    /// Brings all variables back to where a new request begins.
    pub fn reset_variables(&self) -> Result<()> {
        self.with(|r| r.reset_variables())
    }

    fn with<T>(&self, f: impl FnOnce(&mut dyn InferRequest) -> T) -> Result<T> {
        let mut state = self.idle()?;
        match &mut state.request {
            Some(request) => Ok(f(&mut **request)),
            None => Err(gone()),
        }
    }

    // The state, if nothing runs.
    fn idle(&self) -> Result<MutexGuard<'_, State>> {
        let state = lock(&self.shared.state);
        match state.phase {
            _ if state.dropped => Err(gone()),
            Phase::Idle => Ok(state),
            Phase::Running | Phase::Ending => {
                Err(Error::new(ErrorKind::Busy, "the request is running; wait for its end first"))
            }
            Phase::Cancelled => Err(Error::new(
                ErrorKind::Cancelled,
                "the request was cancelled and has not come to its end yet; wait for it first",
            )),
        }
    }
}

fn gone() -> Error {
    Error::usage("the request was dropped")
}

impl Shared {
    // Queues a stage, or ends the run after the last one.
    fn submit(self: &Arc<Self>, stage: usize, ticket: &Arc<Ticket>) {
        let Some(queue) = self.stages.get(stage) else { return self.end(ticket, Ok(())) };
        let (shared, ticket) = (self.clone(), ticket.clone());
        let task = move || match shared.run_stage(stage) {
            Ok(()) => shared.submit(stage + 1, &ticket),
            Err(e) => shared.end(&ticket, Err(e)),
        };
        queue.submit(Box::new(task));
    }

    // Runs a stage on this thread; a panic becomes an error.
    fn run_stage(&self, stage: usize) -> Result<()> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Cancelled {
            return Err(cancelled());
        }
        let mut request = state.request.take().ok_or_else(gone)?;
        state.running = Some(std::thread::current().id());
        drop(state);
        let result = catch_unwind(AssertUnwindSafe(|| request.run_stage(stage)));
        let result = result.unwrap_or_else(|payload| Err(panicked("the device", payload)));
        let mut state = lock(&self.state);
        state.request = Some(request);
        state.running = None;
        self.ring(&state);
        if state.phase == Phase::Cancelled { Err(cancelled()) } else { result }
    }

    // Only the owner that goes waits for this, and waking nobody would still be a call of the system.
    fn ring(&self, state: &State) {
        if state.dropped {
            self.quiet.notify_all();
        }
    }

    // After the last stage: straight to the end, or through the callback.
    fn end(self: &Arc<Self>, ticket: &Arc<Ticket>, mut outcome: Result<()>) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Cancelled {
            outcome = Err(cancelled());
        }
        if !state.callback.is_set() {
            drop(state);
            let _ = self.settle(ticket, outcome);
            return;
        }
        state.phase = Phase::Ending;
        drop(state);
        let (shared, ticket) = (self.clone(), ticket.clone());
        self.callbacks.submit(Box::new(move || shared.call_back(&ticket, outcome)));
    }

    fn call_back(self: Arc<Self>, ticket: &Ticket, mut outcome: Result<()>) {
        let mut state = lock(&self.state);
        state.phase = Phase::Idle;
        let callback = state.callback.lend();
        state.calling = callback.is_some().then(|| std::thread::current().id());
        drop(state);
        if let Some(mut callback) = callback {
            let handle = RequestHandle { shared: self.clone() };
            let called = catch_unwind(AssertUnwindSafe(|| callback(outcome.as_ref().err(), &handle)));
            if let Err(payload) = called {
                outcome = Err(panicked("the callback", payload));
            }
            let unwanted = lock(&self.state).callback.give_back(callback);
            // Its captures may hold anything, the owner of this very request too.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(unwanted))) {
                outcome = Err(panicked("the callback", payload));
            }
            let mut state = lock(&self.state);
            state.calling = None;
            self.ring(&state);
        }
        ticket.settle(outcome);
    }

    // The end of a run without a callback.
    fn settle(&self, ticket: &Ticket, mut outcome: Result<()>) -> Result<()> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Cancelled {
            outcome = Err(cancelled());
        }
        state.phase = Phase::Idle;
        drop(state);
        ticket.settle(outcome.clone());
        outcome
    }
}

impl fmt::Debug for RequestHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestHandle({:?})", lock(&self.shared.state).phase)
    }
}
