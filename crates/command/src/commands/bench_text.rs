//! What `carafe bench` tells while it works, in the words and columns of benchmark_app.

use super::print;
use carafe::{NodeProfile, NodeStatus, Port, Result};
use carafe_bench::Latency;
use std::cell::Cell;
use std::fmt::Write;
use std::time::Duration;

const STEPS: [&str; 11] = [
    "Parsing and validating input arguments",
    "Loading Carafe Runtime",
    "Setting device configuration",
    "Reading model files",
    "Resizing model to match image sizes and given batch",
    "Configuring input of the model",
    "Loading the model to the device",
    "Querying optimal runtime parameters",
    "Creating infer requests and preparing input tensors",
    "Measuring performance",
    "Dumping statistics report",
];

/// Tells steps on standard output; a silent one tells nothing.
pub(super) struct Teller {
    silent: bool,
    step: Cell<usize>,
}

impl Teller {
    pub(super) fn new(silent: bool) -> Teller {
        Teller { silent, step: Cell::new(0) }
    }

    pub(super) fn step(&self, more: &str) -> Result<()> {
        let n = self.step.get();
        self.step.set(n + 1);
        let more = if more.is_empty() { String::new() } else { format!(" ({more})") };
        self.raw(&format!("[Step {}/{}] {}{more}\n", n + 1, STEPS.len(), STEPS[n.min(STEPS.len() - 1)]))
    }

    pub(super) fn info(&self, text: impl AsRef<str>) -> Result<()> {
        self.raw(&format!("[ INFO ] {}\n", text.as_ref()))
    }

    pub(super) fn warn(&self, text: impl AsRef<str>) -> Result<()> {
        self.raw(&format!("[ WARNING ] {}\n", text.as_ref()))
    }

    pub(super) fn raw(&self, text: &str) -> Result<()> {
        if self.silent { Ok(()) } else { print(text) }
    }

    /// `node` gives the name of the node of a port, and its layout.
    pub(super) fn ports(&self, what: &str, ports: &[Port], node: impl Fn(usize) -> (String, String)) -> Result<()> {
        self.info(format!("Model {what}:"))?;
        for (i, p) in ports.iter().enumerate() {
            let names: Vec<&str> = p.names.iter().map(String::as_str).collect();
            let names = if names.is_empty() { p.name.clone() } else { names.join(" , ") };
            let (node, layout) = node(i);
            self.info(format!("    {names} (node: {node}) : {} / {layout} / [{}]", p.ty, p.shape))?;
        }
        Ok(())
    }

    pub(super) fn latency(&self, l: &Latency) -> Result<()> {
        self.info(format!("   Median:        {}", shown(l.median, l.average)))?;
        if l.percent != 50 {
            self.info(format!("   {} percentile: {}", l.percent, shown(l.at_percent, l.average)))?;
        }
        self.info(format!("   Average:       {}", shown(l.average, l.average)))?;
        self.info(format!("   Min:           {}", shown(l.min, l.average)))?;
        self.info(format!("   Max:           {}", shown(l.max, l.average)))
    }
}

pub(super) fn milliseconds(d: Duration) -> String {
    format!("{:.2}", d.as_secs_f64() * 1e3)
}

// In microseconds where the mean is below a millisecond.
fn shown(d: Duration, average: Duration) -> String {
    match average < Duration::from_millis(1) {
        true => format!("{:.2} us", d.as_secs_f64() * 1e6),
        false => format!("{} ms", milliseconds(d)),
    }
}

/// A table of the times of nodes; `shares` adds what each takes of the whole.
pub(super) fn counters(profile: &[NodeProfile], shares: bool) -> String {
    let mut out = String::new();
    let total: Duration = profile.iter().map(|p| p.real_time).sum();
    let total_cpu: Duration = profile.iter().map(|p| p.cpu_time).sum();
    for p in profile {
        let status = match p.status {
            NodeStatus::NotRun => "NOT_RUN",
            NodeStatus::OptimizedOut => "OPTIMIZED_OUT",
            NodeStatus::Executed => "EXECUTED",
        };
        let ms = |d: Duration| format!("{:.3}", d.as_secs_f64() * 1e3);
        let _ = write!(
            out,
            "{:<30} {status:<14} layerType: {:<20} execType: {:<28} realTime (ms): {:<10} cpuTime (ms): {:<10}",
            cut(&p.name, 30),
            cut(&p.type_name, 20),
            cut(&p.kernel, 28),
            ms(p.real_time),
            ms(p.cpu_time)
        );
        if shares {
            let share = 100.0 * p.real_time.as_secs_f64() / total.as_secs_f64().max(1e-12);
            let _ = write!(out, " proportion: {share:.2}%");
        }
        let length = out.trim_end().len();
        out.truncate(length);
        out.push('\n');
    }
    let _ = writeln!(out, "Total time:     {} milliseconds", milliseconds(total));
    let _ = writeln!(out, "Total CPU time: {} milliseconds\n", milliseconds(total_cpu));
    out
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 3).chain("...".chars()).collect(),
        false => text.to_string(),
    }
}
