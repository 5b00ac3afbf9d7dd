//! `AsyncInferQueue`: many inferences over a few requests, and one callback that hears of every end. What the callback raises, and
//! why an inference failed, is raised by the next call that starts or waits.

use crate::compiled_model::CompiledModel;
use crate::errors::failure;
use crate::infer_request::{InferRequest, Request};
use crate::inputs;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The requests of a queue.
pub(crate) struct Queue {
    requests: Vec<Arc<Request>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    idle: VecDeque<usize>,
    callback: Option<Py<PyAny>>,
    raised: VecDeque<PyErr>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when a request has ended, attached to Python.
    pub(crate) fn ended(
        &self,
        py: Python<'_>,
        request: &Arc<Request>,
        id: usize,
        error: Option<&carafe::Error>,
        collected: PyResult<()>,
    ) {
        let callback = self.state().callback.as_ref().map(|c| c.clone_ref(py));
        let mut raised = collected.err();
        match (error, callback) {
            (Some(e), _) => raised = Some(failure(e.to_string())),
            (None, Some(callback)) if raised.is_none() => {
                let userdata = request.userdata(py);
                let object = InferRequest { request: request.clone() };
                raised = Bound::new(py, object).and_then(|object| callback.call1(py, (object, userdata))).err();
            }
            _ => {}
        }
        let mut state = self.state();
        state.raised.extend(raised);
        state.idle.push_back(id);
        drop(state);
        self.changed.notify_all();
    }

    // Waits until `so` of the requests are idle. A lock is never held while Python is waited for.
    fn wait(&self, py: Python<'_>, so: usize) -> PyResult<()> {
        loop {
            let ended = py.detach(|| {
                let state = self.state();
                if state.idle.len() >= so {
                    return true;
                }
                let time = std::time::Duration::from_millis(100);
                let waited = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
                waited.0.idle.len() >= so
            });
            if ended {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    fn raise(&self) -> PyResult<()> {
        let first = self.state().raised.pop_front();
        first.map_or(Ok(()), Err)
    }
}

/// Runs many inferences on a few requests.
#[pyclass(name = "AsyncInferQueue", module = "carafe", frozen, subclass, weakref)]
pub(crate) struct AsyncInferQueue(Arc<Queue>);

impl Drop for AsyncInferQueue {
    fn drop(&mut self) {
        // Requests that still run hold the callback, and that may hold anything.
        let requests = self.0.requests.clone();
        let _ = Python::try_attach(|py| py.detach(|| requests.iter().for_each(|r| r.stop())));
        self.0.state().callback = None;
    }
}

#[pymethods]
impl AsyncInferQueue {
    /// With 0 jobs, as many requests as keep the device busy.
    #[new]
    #[pyo3(signature = (model, jobs=0))]
    fn new(model: &CompiledModel, jobs: usize) -> PyResult<AsyncInferQueue> {
        let jobs = match jobs {
            0 => model
                .compiled
                .property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
                .ok()
                .and_then(|n| n.parse().ok())
                .unwrap_or(1),
            n => n,
        };
        let mut made = Ok(());
        let queue = Arc::new_cyclic(|me| {
            let mut requests = Vec::new();
            for id in 0..jobs {
                match Request::new(&model.compiled, Some((me.clone(), id))) {
                    Ok(request) => requests.push(request),
                    Err(e) => made = Err(e),
                }
            }
            let state = State { idle: (0..requests.len()).collect(), ..State::default() };
            Queue { requests, state: Mutex::new(state), changed: Condvar::new() }
        });
        made.map(|()| AsyncInferQueue(queue))
    }
    fn __repr__(&self) -> String {
        format!("<AsyncInferQueue: {} requests>", self.0.requests.len())
    }
    fn __len__(&self) -> usize {
        self.0.requests.len()
    }
    fn __getitem__(&self, index: isize) -> PyResult<InferRequest> {
        let len = self.0.requests.len();
        let at = if index < 0 { index + len as isize } else { index };
        let request = usize::try_from(at).ok().and_then(|i| self.0.requests.get(i));
        let request =
            request.ok_or_else(|| PyIndexError::new_err(format!("the queue has {len} requests, not {index}")))?;
        Ok(InferRequest { request: request.clone() })
    }
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.0.requests.iter().map(|r| InferRequest { request: r.clone() });
        let all = all.map(|r| Bound::new(py, r)).collect::<PyResult<Vec<_>>>()?;
        Ok(pyo3::types::PyList::new(py, all)?.try_iter()?.into_any())
    }
    /// Sets what is called at each end, with the request and its userdata.
    fn set_callback(&self, callback: Py<PyAny>) {
        self.0.state().callback = Some(callback);
    }
    /// Binds inputs to the next idle request and starts it; waits for one when all are running.
    #[pyo3(signature = (inputs=None, userdata=None, share_inputs=false))]
    fn start_async(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        userdata: Option<Py<PyAny>>,
        share_inputs: bool,
    ) -> PyResult<()> {
        self.0.wait(py, 1)?;
        self.0.raise()?;
        let taken = self.0.state().idle.pop_front();
        let Some(id) = taken else { return self.start_async(py, inputs, userdata, share_inputs) };
        let request = &self.0.requests[id];
        request.set_userdata(userdata);
        let bound = inputs.map_or(Ok(()), |inputs| inputs::bind(request, inputs, share_inputs));
        bound.and_then(|()| request.start()).inspect_err(|_| self.0.state().idle.push_front(id))
    }
    /// Whether a start would not have to wait.
    fn is_ready(&self) -> PyResult<bool> {
        self.0.raise()?;
        Ok(!self.0.state().idle.is_empty())
    }
    /// The request that the next start takes; waits until there is one.
    fn get_idle_request_id(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.wait(py, 1)?;
        self.0.raise()?;
        let first = self.0.state().idle.front().copied();
        let id = first.ok_or_else(|| failure("another thread has taken the idle request"))?;
        // Its callback has run; what is left is the thread's way back. An error was heard of at the end.
        let _ = py.detach(|| self.0.requests[id].request.wait());
        Ok(id)
    }
    /// Waits until all requests are idle.
    fn wait_all(&self, py: Python<'_>) -> PyResult<()> {
        self.0.wait(py, self.0.requests.len())?;
        // Callbacks have run; what is left is their threads' way back. Errors were heard of at the ends.
        py.detach(|| {
            for request in &self.0.requests {
                let _ = request.request.wait();
            }
        });
        let mut raised = std::mem::take(&mut self.0.state().raised);
        raised.pop_front().map_or(Ok(()), Err)
    }
    /// What was given at the last start of each request.
    #[getter(userdata)]
    fn userdata_(&self, py: Python<'_>) -> Vec<Option<Py<PyAny>>> {
        self.0.requests.iter().map(|r| r.userdata(py)).collect()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncInferQueue>()
}
