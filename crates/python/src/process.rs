//! What belongs to the process: versions, forks and its end.

use crate::errors::failure;
use crate::infer_request::Request;
use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Who is inside of the engine with an object, its requests included. The child of a fork has only the thread that forked: what no
/// other thread was using then goes on there with threads of its own, and the locks of what was in use are held for ever.
pub(crate) struct Usage {
    forks: AtomicU64,
    inside: AtomicUsize,
    /// Why it cannot go on in a child whatever happens.
    bound: Option<&'static str>,
}

/// Somebody inside.
pub(crate) struct Inside(Arc<Usage>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Usage {
    pub(crate) fn new(bound: Option<&'static str>) -> Arc<Usage> {
        Arc::new(Usage { forks: AtomicU64::new(FORKS.load(Ordering::Relaxed)), inside: AtomicUsize::new(0), bound })
    }
    /// An error in the child of a fork where it cannot go on.
    pub(crate) fn check(&self) -> PyResult<()> {
        let now = FORKS.load(Ordering::Relaxed);
        if self.forks.load(Ordering::Relaxed) == now {
            return Ok(());
        }
        if let Some(why) = self.bound {
            return Err(failure(format!("{why}; make it again in the child, or start children by `spawn`")));
        }
        if self.inside.load(Ordering::Acquire) > 0 {
            return Err(failure(
                "another thread was using this when the process forked, and what it had locked stays locked in the child; make it \
                 again in the child, or fork while nothing runs",
            ));
        }
        self.forks.store(now, Ordering::Relaxed);
        Ok(())
    }
    /// Counts as inside until the guard goes.
    pub(crate) fn enter(self: &Arc<Self>) -> PyResult<Inside> {
        self.check()?;
        self.inside.fetch_add(1, Ordering::AcqRel);
        Ok(Inside(self.clone()))
    }
}

/// An object of the engine that has threads and locks. In the child of a fork that cannot go on with it, it is neither used nor dropped.
pub(crate) struct Here<T: Send> {
    usage: Arc<Usage>,
    value: Option<T>,
}

impl<T: Send> Here<T> {
    pub(crate) fn new(value: T, usage: &Arc<Usage>) -> Here<T> {
        Here { usage: usage.clone(), value: Some(value) }
    }
    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }
    /// An error in the child of a fork that cannot go on with it.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.usage.check().map(|()| &**self)
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
        if self.usage.check().is_err() {
            std::mem::forget(value);
            return;
        }
        // What runs may need Python to come to its end.
        let _ = Python::try_attach(|py| py.detach(|| drop(value)));
    }
}

/// In which process a device with a driver was first used; 0 before.
static DRIVER: AtomicU64 = AtomicU64::new(0);

/// Said before a device with a driver is used. An error in the child of a fork whose parent did so: the driver waits for threads that
/// are not there.
pub(crate) fn use_driver() -> PyResult<()> {
    let now = FORKS.load(Ordering::Relaxed) + 1;
    match DRIVER.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire) {
        Err(first) if first != now => Err(failure(
            "the process forked after it had used a device with a driver, which does not come along into the child; name device CPU, \
             fork before the device is used, or start children by `spawn`",
        )),
        _ => Ok(()),
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

/// Called before a fork. A request whose callback has run is idle, but its thread may still be on its way back with a lock: that ends
/// first, and needs no Python.
#[pyfunction]
fn _before_fork(py: Python<'_>) {
    let all = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    py.detach(|| {
        for request in all.iter().filter_map(Weak::upgrade) {
            request.settle();
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
    module.add_function(wrap_pyfunction!(_before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(_forked, module)?)?;
    module.add_function(wrap_pyfunction!(get_version, module)?)?;
    module.add("_engine_version", carafe::VERSION)
}
