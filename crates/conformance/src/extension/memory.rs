//! What an operation leaves behind: memory that grows with every batch of the same work. The system tells pages and not bytes, so
//! the work is repeated until a few lost bytes each time are many pages.

use super::probe::{Probe, Values};
use super::{NOT_TAKEN, Said, infer, run, taken};
use carafe::{AttrMap, Core, OpFactory, Properties};

/// Batches that are looked at, behind one that fills caches and arenas.
const BATCHES: usize = 4;
/// Growth that is no noise, in bytes.
const LEAST: u64 = 64 << 10;

const UNTOLD: &str = "this system does not tell its memory";

/// Instances that are made and dropped, and evaluations, without a device.
pub(super) fn of_operation(factory: &OpFactory, probes: &[Probe]) -> Result<Said, String> {
    const INSTANCES: usize = 20_000;
    const EVALUATIONS: usize = 2000;
    let probe = smallest(probes);
    let mut attrs = AttrMap::new();
    probe.op().attrs().into_iter().for_each(|(name, value)| attrs.set(name, value));
    let make = || factory.create(&attrs).map(drop).map_err(|e| format!("an instance cannot be made: {e}"));
    match growth(|| (0..INSTANCES).try_for_each(|_| make()))? {
        None => return Ok(Said::Skipped(UNTOLD.into())),
        Some(0) => {}
        Some(bytes) => return Err(left(INSTANCES, "instances that were made and released", bytes)),
    }
    let inputs = probe.inputs(Values::Random, false)?;
    let eval = || probe.eval(&inputs).map(drop).map_err(|e| format!("{}: `eval`: {e}", probe.title()));
    match growth(|| (0..EVALUATIONS).try_for_each(|_| eval()))? {
        Some(bytes) if bytes > 0 => Err(left(EVALUATIONS, "evaluations", bytes)),
        _ => Ok(Said::Passed(format!("rounds of {INSTANCES} instances and {EVALUATIONS} evaluations"))),
    }
}

/// Inferences of one compiled model, and compilations.
pub(super) fn of_device(core: &Core, device: &str, probes: &[Probe]) -> Result<Said, String> {
    const INFERENCES: usize = 2000;
    const COMPILATIONS: usize = 100;
    let Some((large, inputs)) = taken(core, device, probes)? else { return Ok(Said::Skipped(NOT_TAKEN.into())) };
    let compiled = core.compile_model(&large.model, device, &Properties::new()).map_err(|e| e.to_string())?;
    let (request, n) = (compiled.create_infer_request(), compiled.outputs().len());
    match growth(|| (0..INFERENCES).try_for_each(|_| infer(&request, &inputs, n).map(drop)))? {
        None => return Ok(Said::Skipped(UNTOLD.into())),
        Some(0) => {}
        Some(bytes) => return Err(left(INFERENCES, &format!("inferences of {}", large.title()), bytes)),
    }
    match growth(|| (0..COMPILATIONS).try_for_each(|_| run(core, &large.model, device, &inputs).map(drop)))? {
        Some(bytes) if bytes > 0 => Err(left(COMPILATIONS, &format!("compilations of {}", large.title()), bytes)),
        _ => Ok(Said::Passed(format!("rounds of {INFERENCES} inferences and {COMPILATIONS} compilations"))),
    }
}

fn left(times: usize, what: &str, bytes: u64) -> String {
    format!("{times} {what} leave {} KiB behind", bytes / 1024)
}

fn smallest(probes: &[Probe]) -> &Probe {
    probes.iter().filter(|p| p.elements() > 0).min_by_key(|p| p.elements()).unwrap_or(&probes[0])
}

// By how much the process grows with most batches, at least; 0 when it does not. What was freed before is used up first, so one
// batch may pass without growth. `None` where nobody tells.
fn growth(mut batch: impl FnMut() -> Result<(), String>) -> Result<Option<u64>, String> {
    batch()?;
    let Some(mut before) = resident() else { return Ok(None) };
    let (mut least, mut still) = (u64::MAX, 0);
    for _ in 0..BATCHES {
        batch()?;
        let after = resident().unwrap_or(before);
        match after.saturating_sub(before) {
            bytes if bytes < LEAST => still += 1,
            bytes => least = least.min(bytes),
        }
        if still > 1 {
            return Ok(Some(0));
        }
        before = after;
    }
    Ok(Some(least))
}

// Bytes of this process in memory.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}
