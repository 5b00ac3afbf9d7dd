//! What every device must do, as two suites that any device can be put through: behaviours (compile, properties, tensors,
//! asynchronous requests, state, export and so on) and operations (every case file). A check that a device cannot be asked
//! because it says itself that it lacks the ability counts as skipped, with the reason; the device says so by its answer
//! to `query` or by its metrics, never by failing later.

#![forbid(unsafe_code)]

mod behaviour;
pub mod case;
pub mod compare;
mod coverage;
mod embedded;
pub mod extension;
pub mod guard;
pub mod isolate;
mod ops;
mod plan;
pub mod process;
pub mod report;
pub mod runner;
mod scan;
mod target;
pub mod values;

pub use compare::{Tolerance, compare};
pub use coverage::{Coverage, coverage};
pub use embedded::case_files;
pub use plan::Plan;
pub use report::{OpRow, Report, Row, Totals, Verdict};
pub use target::Target;

use carafe::Result;
use plan::Growing;
use std::sync::Arc;

/// Both suites, or what of them has a name that contains `filter`: `tensors::`, `export`, `Softmax`. `hear` is told of
/// each row as it begins.
pub fn run(target: &Arc<Target>, filter: &str, hear: &mut dyn FnMut(&str)) -> Result<Report> {
    let plan = Plan::new(filter)?;
    let mut growing = Growing::new(head(target)?);
    let (mut cases, mut heard) = (None, String::new());
    for step in 0..plan.len() {
        let name = plan.name(step);
        if name != heard {
            hear(&name);
            heard = name;
        }
        growing.add(&plan, step, plan.run(step, target, &mut cases)?);
    }
    Ok(growing.finish())
}

// A report of nothing but the device.
pub(crate) fn head(target: &Target) -> Result<Report> {
    let device = target.core()?.device(&target.device)?;
    Ok(Report {
        device: target.device.clone(),
        full_name: device.metric("FULL_DEVICE_NAME").unwrap_or_default(),
        version: device.version().build,
        ..Report::default()
    })
}
