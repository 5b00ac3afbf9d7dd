//! A request as users hold it: tensors by name, index or port, inference at once or in the background, state and times.

use crate::inputs::{IntoInputs, Outputs};
use carafe_device::{AsyncInferRequest, CancelFlag, CompiledModel, Executors, NodeProfile, PortKey, RequestHandle};
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One inference at a time, with its own tensors and state. Cheap to clone; clones are the same request. When the last one
/// goes, what runs is cancelled, and dropping waits until it has stopped.
///
/// While an inference runs every other call gives an error of kind [`Busy`](carafe_graph::ErrorKind::Busy).
#[derive(Clone)]
pub struct InferRequest {
    handle: RequestHandle,
    model: Arc<dyn CompiledModel>,
    /// `None` for the one that a callback gets: it does not keep the request alive.
    _owner: Option<Arc<AsyncInferRequest>>,
}

/// A variable of a request: what the model remembers from one inference to the next.
#[derive(Clone, Debug)]
pub struct VariableState {
    request: InferRequest,
    name: String,
}

impl InferRequest {
    pub(crate) fn new(model: Arc<dyn CompiledModel>, executors: &Executors) -> InferRequest {
        let owner = Arc::new(AsyncInferRequest::new(model.clone().create_request(), executors));
        InferRequest { handle: owner.handle(), model, _owner: Some(owner) }
    }

    /// As a callback sees it.
    pub(crate) fn unowned(handle: RequestHandle, model: Arc<dyn CompiledModel>) -> InferRequest {
        InferRequest { handle, model, _owner: None }
    }

    fn at_input<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<usize> {
        key.into().find(self.model.inputs(), "input")
    }
    fn at_output<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<usize> {
        key.into().find(self.model.outputs(), "output")
    }

    /// Binds a tensor to an input without copying it. A wrong type or shape is refused.
    pub fn set_input<'k>(&self, key: impl Into<PortKey<'k>>, tensor: Tensor) -> Result<()> {
        self.handle.set_input(self.at_input(key)?, tensor)
    }

    /// The tensor that is bound to an input; `None` before one was.
    pub fn input<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<Option<Tensor>> {
        self.handle.input(self.at_input(key)?)
    }

    /// Gives the memory that an output goes to; it comes back through [`InferRequest::output`]. A wrong type or shape is
    /// refused.
    pub fn set_output<'k>(&self, key: impl Into<PortKey<'k>>, tensor: Tensor) -> Result<()> {
        self.handle.set_output(self.at_output(key)?, tensor)
    }

    /// An output of the last inference; shares its memory.
    pub fn output<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<Tensor> {
        self.handle.output(self.at_output(key)?)
    }

    /// All outputs of the last inference.
    pub fn outputs(&self) -> Result<Outputs> {
        let tensors = (0..self.model.outputs().len()).map(|i| self.handle.output(i)).collect::<Result<_>>()?;
        Ok(Outputs::new(self.model.clone(), tensors))
    }

    fn bind(&self, inputs: impl IntoInputs) -> Result<()> {
        inputs.each(&mut |key, tensor| self.set_input(key, tensor))
    }

    /// Binds the inputs and runs on the calling thread. The callback is not called. `infer(())` runs with the tensors that
    /// are bound.
    ///
    /// Of the outputs only handles are made. Drop them before the next inference, or hold them and pay for new memory.
    pub fn infer(&self, inputs: impl IntoInputs) -> Result<Outputs> {
        self.bind(inputs)?;
        self.handle.infer()?;
        self.outputs()
    }

    /// Binds the inputs, starts an inference and returns. `start_async(())` starts with the tensors that are bound. Inside
    /// a callback the own request may be started again.
    pub fn start_async(&self, inputs: impl IntoInputs) -> Result<()> {
        self.bind(inputs)?;
        self.handle.start_async()
    }

    /// Waits for the end of the newest run and of its callback and gives its error; returns at once when nothing was ever
    /// started.
    pub fn wait(&self) -> Result<()> {
        self.handle.wait()
    }

    /// As [`InferRequest::wait`], for at most this time: false when the run has not ended by then, and when nothing was ever
    /// started.
    pub fn wait_for(&self, time: Duration) -> Result<bool> {
        self.handle.wait_for(time)
    }

    /// Asks a running inference to stop; `wait` and the callback then get an error of kind
    /// [`Cancelled`](carafe_graph::ErrorKind::Cancelled). An idle request is left alone.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// The flag that stops the device, for a watcher that must not wait for the request itself.
    pub fn cancel_flag(&self) -> CancelFlag {
        self.handle.cancel_flag()
    }

    /// Whether a run has not come to its end yet. False inside the callback.
    pub fn is_busy(&self) -> bool {
        self.handle.is_busy()
    }

    /// Sets what is called when a run started by [`InferRequest::start_async`] has ended, on a thread for callbacks: with its
    /// error if it failed, and with the request, idle again. The request of the callback does not keep itself alive; one
    /// that you capture does, for ever.
    pub fn set_callback(&self, mut callback: impl FnMut(Option<&Error>, &InferRequest) + Send + 'static) -> Result<()> {
        let model = self.model.clone();
        self.handle.set_callback(move |error, handle| {
            callback(error, &InferRequest::unowned(handle.clone(), model.clone()));
        })
    }

    /// No callback from now on.
    pub fn clear_callback(&self) -> Result<()> {
        self.handle.clear_callback()
    }

    /// Times of the last inference; empty unless `PERF_COUNT` is on.
    pub fn profile(&self) -> Result<Vec<NodeProfile>> {
        self.handle.profile()
    }

    /// The variables of the model, with what this request keeps in them.
    pub fn query_state(&self) -> Result<Vec<VariableState>> {
        let names = self.handle.variables()?;
        Ok(names.into_iter().map(|name| VariableState { request: self.clone(), name }).collect())
    }

    /// A variable by its name.
    pub fn state(&self, name: &str) -> Result<VariableState> {
        let all = self.handle.variables()?;
        match all.iter().any(|n| n == name) {
            true => Ok(VariableState { request: self.clone(), name: name.to_string() }),
            false => Err(Error::usage(format!("the model has no variable `{name}`; it has: {}", all.join(", ")))),
        }
    }

    /// Brings all variables back to where a new request begins.
    pub fn reset_state(&self) -> Result<()> {
        self.handle.reset_variables()
    }
}

impl VariableState {
    /// Its id in the model.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// What it holds; `None` before the first assignment and after a reset.
    pub fn get(&self) -> Result<Option<Tensor>> {
        self.request.handle.variable(&self.name)
    }
    /// Sets what the next inference reads. A wrong type or shape is refused.
    pub fn set(&self, value: Tensor) -> Result<()> {
        self.request.handle.set_variable(&self.name, value)
    }
}

impl fmt::Debug for InferRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InferRequest({:?})", self.handle)
    }
}
