//! What belongs to the process: versions, forks and its end.

use crate::errors::failure;
use crate::infer_request::Request;
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// An object of the engine that has threads. In the child of a fork, which these are not in, it is neither used nor dropped.
pub(crate) struct Here<T: Send> {
    forks: u64,
    value: Option<T>,
}

impl<T: Send> Here<T> {
    pub(crate) fn new(value: T) -> Here<T> {
        Here { forks: FORKS.load(Ordering::Relaxed), value: Some(value) }
    }
    fn is_here(&self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
    /// An error in the child of a fork.
    pub(crate) fn get(&self) -> PyResult<&T> {
        match self.is_here() {
            true => Ok(self),
            false => Err(failure(
                "this was made before the process forked, and its threads are in the parent; compile the model again in the child",
            )),
        }
    }
}

/// For what needs no threads: names, shapes, memory.
impl<T: Send> Deref for Here<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> Drop for Here<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if !self.is_here() {
            std::mem::forget(value);
            return;
        }
        // What runs may need Python to come to its end.
        let _ = Python::try_attach(|py| py.detach(|| drop(value)));
    }
}

/// Requests that may run when the process ends.
static REQUESTS: Mutex<Vec<Weak<Request>>> = Mutex::new(Vec::new());

/// Remembers a request that runs in the background.
pub(crate) fn remember(request: &Arc<Request>) {
    let mut all = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|r| r.strong_count() > 0);
    all.push(Arc::downgrade(request));
}

/// Cancels what still runs and waits for its end, so that no thread needs Python when it is gone.
#[pyfunction]
fn _stop_all(py: Python<'_>) {
    let all: Vec<Weak<Request>> = std::mem::take(&mut REQUESTS.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| {
        for request in all.iter().filter_map(Weak::upgrade) {
            request.stop();
        }
    });
}

/// Called in the child of a fork.
#[pyfunction]
fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The release of OpenVINO whose API this is, then our own version.
pub(crate) const BUILD: &str = concat!("2026.4.1-", env!("CARGO_PKG_VERSION"), "-carafe");

/// The version of the API and of the engine.
#[pyfunction]
fn get_version() -> &'static str {
    BUILD
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_stop_all, module)?)?;
    module.add_function(wrap_pyfunction!(_forked, module)?)?;
    module.add_function(wrap_pyfunction!(get_version, module)?)?;
    module.add("_engine_version", carafe::VERSION)
}
