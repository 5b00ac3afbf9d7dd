//! What a run comes to, as text, tables and pages. Files get the names and columns that `benchmark_app` gives them, so that what
//! reads its reports reads these.

mod csv;
mod html;
mod json;

use crate::latency::Latency;
use crate::measure::Measurement;
use carafe::{NodeProfile, NodeStatus};
use std::time::Duration;

/// Which tables of times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterReport {
    /// None.
    None,
    /// One, of means.
    Average,
    /// One for each request.
    Detailed,
}

/// All that is known of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked for: options and their values.
    pub command: Vec<(String, String)>,
    /// How it was done: model, device, requests and the like.
    pub setup: Vec<(String, String)>,
    /// Times before the measured loop, in milliseconds: reading, compiling and the like.
    pub stages: Vec<(String, Duration)>,
    /// What was measured.
    pub measurement: Measurement,
    /// Its latencies in numbers.
    pub latency: Latency,
    /// Latencies of each group of inputs with what it is called; empty when there is one.
    pub groups: Vec<(String, Latency)>,
}

impl Report {
    /// Rows under `Execution results`.
    pub fn results(&self) -> Vec<(String, String)> {
        let ms = |d: Duration| format!("{:.2}", milliseconds(d));
        let mut rows: Vec<(String, String)> =
            self.stages.iter().map(|(name, time)| (format!("{name} time (ms)"), ms(*time))).collect();
        let m = &self.measurement;
        if let Some(first) = m.first {
            rows.push(("first inference time (ms)".into(), ms(first)));
        }
        rows.push(("total execution time (ms)".into(), ms(m.duration)));
        rows.push(("total number of iterations".into(), m.latencies.len().to_string()));
        let latency = |rows: &mut Vec<(String, String)>, l: &Latency| {
            rows.push(("latency (ms)".into(), ms(l.median)));
            if l.percent != 50 {
                rows.push((format!("latency ({} percentile) (ms)", l.percent), ms(l.at_percent)));
            }
            rows.push(("avg latency".into(), ms(l.average)));
            rows.push(("min latency".into(), ms(l.min)));
            rows.push(("max latency".into(), ms(l.max)));
        };
        latency(&mut rows, &self.latency);
        for (name, l) in &self.groups {
            rows.push(("group".into(), name.clone()));
            latency(&mut rows, l);
        }
        rows.push(("throughput".into(), format!("{:.2}", m.throughput())));
        rows
    }
}

fn milliseconds(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

// What a node takes of the whole.
fn share(p: &NodeProfile, total: Duration) -> String {
    format!("{:.2}%", 100.0 * p.real_time.as_secs_f64() / total.as_secs_f64().max(1e-12))
}

fn status(s: NodeStatus) -> &'static str {
    match s {
        NodeStatus::NotRun => "Status.NOT_RUN",
        NodeStatus::OptimizedOut => "Status.OPTIMIZED_OUT",
        NodeStatus::Executed => "Status.EXECUTED",
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A small run whose only node has an unfriendly name.
    pub(crate) fn report() -> Report {
        let us = Duration::from_micros;
        let node = NodeProfile {
            name: "</script><b>;\"n\"".into(),
            type_name: "T".into(),
            kernel: "k".into(),
            status: NodeStatus::Executed,
            real_time: us(1500),
            cpu_time: us(1400),
        };
        let mut measurement = Measurement {
            first: Some(us(9000)),
            latencies: vec![us(1000), us(2000), us(3000)],
            groups: vec![0, 0, 0],
            duration: us(6000),
            samples: 3,
            requests: 1,
            last: vec![vec![node.clone()]],
            ..Measurement::default()
        };
        measurement.counters.add(&[node]);
        Report {
            command: vec![("-m".into(), "m.xml".into())],
            setup: vec![("topology".into(), "m".into())],
            stages: vec![("read model".into(), us(7000))],
            latency: Latency::of(&measurement.latencies, 90),
            measurement,
            groups: vec![],
        }
    }

    #[test]
    fn results_have_the_names_of_benchmark_app() {
        let rows = report().results();
        let has =
            |name: &str, value: &str| assert!(rows.contains(&(name.into(), value.into())), "{name} {value}: {rows:?}");
        has("read model time (ms)", "7.00");
        has("first inference time (ms)", "9.00");
        has("latency (ms)", "2.00");
        has("latency (90 percentile) (ms)", "3.00");
        has("throughput", "500.00");
    }
}
