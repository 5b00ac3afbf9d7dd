//! What every device must do, as two suites that any device can be put through: behaviours (compile, properties, tensors,
//! asynchronous requests, state, export and so on) and operations (every case file). A check that a device cannot be asked
//! because it says itself that it lacks the ability counts as skipped, with the reason; the device says so by its answer
//! to `query` or by its metrics, never by failing later.

#![forbid(unsafe_code)]

mod behaviour;
pub mod case;
pub mod compare;
mod embedded;
pub mod guard;
pub mod ops;
pub mod report;
pub mod runner;
mod scan;
mod target;
pub mod values;

pub use compare::{Tolerance, compare};
pub use embedded::case_files;
pub use report::{OpRow, Report, Row, Totals, Verdict};
pub use target::Target;

use carafe::{Error, Result};
use std::sync::Arc;

/// Both suites, or what of them has a name that contains `filter`: `tensors::`, `export`, `Softmax`. `hear` is told of
/// each row as it ends.
pub fn run(target: &Arc<Target>, filter: &str, hear: &mut dyn FnMut(&str)) -> Result<Report> {
    let core = target.core()?;
    let device = core.device(&target.device)?;
    let mut report = Report {
        device: target.device.clone(),
        full_name: device.metric("FULL_DEVICE_NAME").unwrap_or_default(),
        version: device.version().build,
        behaviours: vec![],
        ops: vec![],
    };
    for suite in behaviour::SUITES {
        for (name, check) in suite.checks {
            if is_wanted(&format!("{}::{name}", suite.name), filter) {
                hear(&format!("{}::{name}", suite.name));
                report.behaviours.push(behaviour::run(target, suite.name, name, *check));
            }
        }
    }
    // `export::` and the like name a behaviour, and reading the cases takes a moment.
    let names_suite = filter.split_once("::").is_some_and(|(suite, _)| !"ops".ends_with(&suite.to_ascii_lowercase()));
    if names_suite && !report.behaviours.is_empty() {
        return Ok(report);
    }
    let files = case_files().map_err(|e| Error::invalid(e.to_string()))?;
    report.ops = ops::run(target, files, &|name| is_wanted(&format!("ops::{name}"), filter), hear)?;
    if report.behaviours.is_empty() && report.ops.is_empty() {
        return Err(Error::usage(format!("nothing has a name that contains `{filter}`")));
    }
    Ok(report)
}

fn is_wanted(name: &str, filter: &str) -> bool {
    name.to_ascii_lowercase().contains(&filter.to_ascii_lowercase())
}
