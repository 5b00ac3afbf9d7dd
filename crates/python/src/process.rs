//! What belongs to the process: its version, forks and its end.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// How often the process was forked on the way here. Threads of the engine do not come along.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
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
    module.add_function(wrap_pyfunction!(_forked, module)?)?;
    module.add_function(wrap_pyfunction!(get_version, module)?)?;
    module.add("__version__", carafe::VERSION)
}
