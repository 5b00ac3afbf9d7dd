//! Many inferences over a few requests of one model, with inputs by name, index or port.

use crate::compiled::CompiledModel;
use crate::inputs::IntoInputs;
use crate::request::InferRequest;
use carafe_device as device;
use carafe_device::{NodeProfile, PortKey};
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use std::fmt;
use std::sync::Arc;

/// Runs many inferences on a few requests: [`AsyncInferQueue::start_async`] waits for an idle request, and one callback hears
/// of every end, with what was given at the start. Dropping it cancels what still runs; call
/// [`AsyncInferQueue::wait_all`] first.
///
/// ```no_run
/// # use carafe_runtime::{AsyncInferQueue, CompiledModel};
/// # use carafe_tensor::Tensor;
/// # fn run(compiled: &CompiledModel, tensors: Vec<Tensor>) -> carafe_graph::Result<()> {
/// let queue = AsyncInferQueue::new(compiled, 0)?;
/// queue.set_callback(|done, n: usize| println!("{n}: {:?}", done.output("y")))?;
/// for (n, tensor) in tensors.into_iter().enumerate() {
///     queue.start_async(&[("x", tensor)], n)?;
/// }
/// queue.wait_all()?;
/// # Ok(())
/// # }
/// ```
pub struct AsyncInferQueue<U: Send + 'static = ()> {
    queue: device::AsyncInferQueue<U>,
    model: Arc<dyn device::CompiledModel>,
}

/// An ended inference as the callback of a queue sees it.
#[derive(Debug)]
pub struct Finished<'a> {
    /// Which request of the queue.
    pub id: usize,
    /// Why it failed.
    pub error: Option<&'a Error>,
    request: InferRequest,
}

impl<U: Send + 'static> AsyncInferQueue<U> {
    /// With 0 jobs, as many requests as the model says keep its device busy.
    pub fn new(compiled: &CompiledModel, jobs: usize) -> Result<AsyncInferQueue<U>> {
        let model = compiled.device_model().clone();
        Ok(AsyncInferQueue { queue: device::AsyncInferQueue::new(&model, compiled.executors(), jobs)?, model })
    }

    /// Sets what is called at each end, one call at a time, on a thread for callbacks. The request is not reused before
    /// the call returns.
    pub fn set_callback(&self, mut callback: impl FnMut(Finished<'_>, U) + Send + 'static) -> Result<()> {
        let model = self.model.clone();
        self.queue.set_callback(move |done, user| {
            let request = InferRequest::unowned(done.request().clone(), model.clone());
            callback(Finished { id: done.id, error: done.error, request }, user);
        })
    }

    /// Binds inputs to the next idle request and starts it; waits for one when all are running. Gives its id.
    pub fn start_async(&self, inputs: impl IntoInputs, user: U) -> Result<usize> {
        let mut list = vec![];
        inputs.each(&mut |key, tensor| {
            list.push((key.find(self.model.inputs(), "input")?, tensor));
            Ok(())
        })?;
        self.queue.start_async(list, user)
    }

    /// Whether a start would not have to wait.
    pub fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    /// The request that the next start takes; waits until there is one.
    pub fn get_idle_request_id(&self) -> Result<usize> {
        self.queue.get_idle_request_id()
    }

    /// Waits until all requests are idle and gives the first error since the last call, with the number of further ones.
    pub fn wait_all(&self) -> Result<()> {
        self.queue.wait_all()
    }

    /// A request by its id. Starting it directly goes past the queue: its end is not reported to the callback.
    pub fn request(&self, id: usize) -> Option<InferRequest> {
        let handle = self.queue.iter().nth(id)?;
        Some(InferRequest::unowned(handle.clone(), self.model.clone()))
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Finished<'_> {
    /// An output of this inference by name, index or port; shares its memory.
    pub fn output<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<Tensor> {
        self.request.output(key)
    }
    /// The tensor that was bound to an input.
    pub fn input<'k>(&self, key: impl Into<PortKey<'k>>) -> Result<Option<Tensor>> {
        self.request.input(key)
    }
    /// Times of this inference; empty unless `PERF_COUNT` is on.
    pub fn profile(&self) -> Result<Vec<NodeProfile>> {
        self.request.profile()
    }
}

impl<U: Send + 'static> fmt::Debug for AsyncInferQueue<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}
