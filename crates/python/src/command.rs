//! The `carafe` command inside of the package: the same program as the one that is built alone.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Runs the command with these arguments, the first of which is its name, and gives its exit code. Ctrl-C ends it at once, as it
/// does the program.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> PyResult<u8> {
    let signal = py.import("signal")?;
    let of_main_thread = signal.call_method1("signal", (signal.getattr("SIGINT")?, signal.getattr("SIG_DFL")?));
    drop(of_main_thread); // In other threads Python keeps the signal.
    let sys = py.import("sys")?;
    for stream in ["stdout", "stderr"] {
        sys.getattr(stream)?.call_method("flush", (), None::<&Bound<'_, PyDict>>)?;
    }
    Ok(py.detach(|| carafe_command::run(arguments)))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_command, module)?)
}
