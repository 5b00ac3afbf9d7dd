//! Several requests of one model and a queue of inputs for them: `start_async` waits for an idle request, and one callback
//! hears of every end, with what the user gave at the start. Errors are also kept for `wait_all`.

use super::executor::Queue;
use super::{AsyncInferRequest, Executors, RequestHandle, lock};
use crate::CompiledModel;
use carafe_graph::{Error, ErrorKind, Result, panic_text};
use carafe_tensor::Tensor;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Index;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Runs many inferences on a few requests. Dropping it cancels what still runs; call `wait_all` first.
pub struct AsyncInferQueue<U: Send + 'static = ()> {
    requests: Vec<AsyncInferRequest>,
    jobs: Arc<Jobs<U>>,
    callbacks: Queue,
}

/// An ended inference as the callback sees it.
#[derive(Debug)]
pub struct Finished<'a> {
    /// Which request of the queue.
    pub id: usize,
    /// Why it failed.
    pub error: Option<&'a Error>,
    request: &'a RequestHandle,
}

type Callback<U> = Box<dyn FnMut(Finished<'_>, U) + Send>;

struct Jobs<U> {
    state: Mutex<State<U>>,
    ended: Condvar,
    callback: Mutex<Option<Callback<U>>>,
}

struct State<U> {
    /// Ids in the order they became idle.
    idle: VecDeque<usize>,
    /// What was given at the start, by id.
    given: Vec<Option<U>>,
    errors: VecDeque<Error>,
}

impl<U: Send + 'static> AsyncInferQueue<U> {
    /// On the executors that all requests of the model share. With 0 jobs, as many requests as the model says keep its device
    /// busy.
    pub fn new(compiled: &Arc<dyn CompiledModel>, executors: &Executors, jobs: usize) -> Result<AsyncInferQueue<U>> {
        let best = || compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS").ok().and_then(|n| n.trim().parse().ok());
        let count = if jobs > 0 { jobs } else { best().unwrap_or(1).max(1) };
        let state = State {
            idle: (0..count).collect(),
            given: std::iter::repeat_with(|| None).take(count).collect(),
            errors: VecDeque::new(),
        };
        let jobs = Arc::new(Jobs { state: Mutex::new(state), ended: Condvar::new(), callback: Mutex::new(None) });
        let mut requests = Vec::with_capacity(count);
        for id in 0..count {
            let request = AsyncInferRequest::new(compiled.clone().create_request(), executors);
            let jobs = jobs.clone();
            request.set_callback(move |error, request| jobs.end(Finished { id, error, request }))?;
            requests.push(request);
        }
        Ok(AsyncInferQueue { requests, jobs, callbacks: executors.callback().queue() })
    }

    /// Sets what is called at each end, one call at a time, on a thread for callbacks. The request is not reused before
    /// the call returns.
    pub fn set_callback(&self, callback: impl FnMut(Finished<'_>, U) + Send + 'static) -> Result<()> {
        self.refuse_inside_callback("setting the callback of a queue")?;
        let old = lock(&self.jobs.callback).replace(Box::new(callback));
        drop(old);
        Ok(())
    }

    /// Binds inputs by index to the next idle request and starts it; waits for one when all are running. Gives its id.
    pub fn start_async(&self, inputs: impl IntoIterator<Item = (usize, Tensor)>, user: U) -> Result<usize> {
        let id = self.take_idle()?;
        lock(&self.jobs.state).given[id] = Some(user);
        let request = &self.requests[id];
        let set = inputs.into_iter().try_for_each(|(i, tensor)| request.set_input(i, tensor));
        if let Err(e) = set.and_then(|()| request.start_async()) {
            let user = self.jobs.put_back(id);
            drop(user);
            return Err(e);
        }
        Ok(id)
    }

    /// Whether a start would not have to wait.
    pub fn is_ready(&self) -> bool {
        !lock(&self.jobs.state).idle.is_empty()
    }

    /// The request that the next start takes; waits until there is one.
    pub fn get_idle_request_id(&self) -> Result<usize> {
        let state = self.wait_until(|state| !state.idle.is_empty())?;
        state.idle.front().copied().ok_or_else(all_running)
    }

    fn take_idle(&self) -> Result<usize> {
        self.wait_until(|state| !state.idle.is_empty())?.idle.pop_front().ok_or_else(all_running)
    }

    /// Waits until all requests are idle and gives the first error since the last call, with the number of further ones.
    pub fn wait_all(&self) -> Result<()> {
        let mut state = self.wait_until(|state| state.idle.len() == state.given.len())?;
        let Some(first) = state.errors.pop_front() else { return Ok(()) };
        let more = std::mem::take(&mut state.errors).len();
        Err(if more > 0 { first.at(format!("first of {} errors", more + 1)) } else { first })
    }

    fn wait_until(&self, done: impl Fn(&State<U>) -> bool) -> Result<std::sync::MutexGuard<'_, State<U>>> {
        let mut state = lock(&self.jobs.state);
        while !done(&state) {
            if self.callbacks.is_current() {
                return Err(all_running());
            }
            state = self.jobs.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(state)
    }

    fn refuse_inside_callback(&self, what: &str) -> Result<()> {
        match self.callbacks.is_current() {
            true => Err(Error::usage(format!("{what} inside a callback would never end"))),
            false => Ok(()),
        }
    }

    /// The requests, by id. Starting one of them directly goes past the queue: its end is not told to the callback.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RequestHandle> {
        self.requests.iter().map(|r| &**r)
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

fn all_running() -> Error {
    Error::new(ErrorKind::Busy, "every request is running, and a callback cannot wait for the end of one")
}

impl<U: Send + 'static> Jobs<U> {
    // An id that was taken is idle again.
    fn put_back(&self, id: usize) -> Option<U> {
        let mut state = lock(&self.state);
        let user = state.given[id].take();
        state.idle.push_back(id);
        self.ended.notify_all();
        user
    }

    fn end(&self, finished: Finished<'_>) {
        let id = finished.id;
        let mut state = lock(&self.state);
        // Nothing was given when the request was started past the queue.
        let Some(user) = state.given[id].take() else { return };
        state.errors.extend(finished.error.cloned());
        drop(state);
        let call = || {
            if let Some(callback) = &mut *lock(&self.callback) {
                callback(finished, user);
            }
        };
        let panic = catch_unwind(AssertUnwindSafe(call)).err().map(panic_text);
        let error = |text: &String| Error::invalid(format!("the callback panicked: {text}"));
        lock(&self.state).errors.extend(panic.as_ref().map(error));
        self.put_back(id);
        if let Some(text) = panic {
            // The request says it too.
            resume_unwind(Box::new(text));
        }
    }
}

impl Finished<'_> {
    /// The request, idle again.
    pub fn request(&self) -> &RequestHandle {
        self.request
    }
    /// Output of this inference; shares its memory.
    pub fn output(&self, index: usize) -> Result<Tensor> {
        self.request.output(index)
    }
    /// The tensor that was bound to an input.
    pub fn input(&self, index: usize) -> Result<Option<Tensor>> {
        self.request.input(index)
    }
    /// Times of this inference.
    pub fn profile(&self) -> Result<Vec<crate::NodeProfile>> {
        self.request.profile()
    }
}

impl<U: Send + 'static> Index<usize> for AsyncInferQueue<U> {
    type Output = RequestHandle;
    fn index(&self, id: usize) -> &RequestHandle {
        &self.requests[id]
    }
}

impl<U: Send + 'static> fmt::Debug for AsyncInferQueue<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
