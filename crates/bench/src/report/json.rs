//! One JSON object.

use super::{CounterReport, Report, status};
use crate::latency::{Latency, histogram};
use carafe::NodeProfile;
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Report {
    /// Everything as numbers: times in milliseconds.
    pub fn to_json(&self) -> Value {
        let texts = |rows: &[(String, String)]| -> Map<String, Value> {
            rows.iter().map(|(k, v)| (k.clone(), json!(v))).collect()
        };
        let m = &self.measurement;
        let stages: Map<String, Value> = self.stages.iter().map(|(k, v)| (k.clone(), ms(*v))).collect();
        let bars = histogram(&m.latencies, 32);
        let bars: Vec<Value> =
            bars.iter().map(|b| json!({"from_ms": ms(b.from), "to_ms": ms(b.to), "count": b.count})).collect();
        let groups: Vec<Value> =
            self.groups.iter().map(|(name, l)| json!({"inputs": name, "latency_ms": latency(l)})).collect();
        let mut all = json!({
            "command": texts(&self.command),
            "setup": texts(&self.setup),
            "stages_ms": stages,
            "first_inference_ms": m.first.map(ms),
            "iterations": m.latencies.len(),
            "samples": m.samples,
            "requests": m.requests,
            "duration_ms": ms(m.duration),
            "latency_ms": latency(&self.latency),
            "throughput": rounded(m.throughput()),
            "histogram": bars,
        });
        if !groups.is_empty() {
            all["groups"] = json!(groups);
        }
        let nodes = m.counters.average();
        if !nodes.is_empty() {
            all["nodes"] = nodes.iter().map(node).collect();
        }
        all
    }

    /// Times of nodes; `None` when the kind of report has none or none were taken.
    pub fn counters_json(&self, kind: CounterReport) -> Option<Value> {
        let table = |rows: &[NodeProfile]| rows.iter().map(node).collect::<Value>();
        let m = &self.measurement;
        match kind {
            CounterReport::None => None,
            _ if m.last.iter().all(Vec::is_empty) => None,
            CounterReport::Average => Some(json!({"report_type": "average", "nodes": table(&m.counters.average())})),
            CounterReport::Detailed => {
                let requests: Vec<Value> = m.last.iter().map(|rows| table(rows)).collect();
                Some(json!({"report_type": "detailed", "requests": requests}))
            }
        }
    }
}

// Nanoseconds are what clocks give: more digits are noise.
fn ms(d: Duration) -> Value {
    json!(d.as_nanos() as f64 / 1e6)
}

fn rounded(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

fn latency(l: &Latency) -> Value {
    let mut row = json!({"median": ms(l.median), "average": ms(l.average), "min": ms(l.min), "max": ms(l.max)});
    if l.percent != 50 {
        row[format!("percentile_{}", l.percent)] = ms(l.at_percent);
    }
    row
}

fn node(p: &NodeProfile) -> Value {
    json!({
        "name": p.name, "type": p.type_name, "kernel": p.kernel, "status": status(p.status).trim_start_matches("Status."),
        "real_ms": ms(p.real_time), "cpu_ms": ms(p.cpu_time),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn numbers_are_numbers() {
        let all = report().to_json();
        assert_eq!(all["latency_ms"]["median"], 2.0);
        assert_eq!(all["latency_ms"]["percentile_90"], 3.0);
        assert_eq!(all["throughput"], 500.0);
        assert_eq!(all["nodes"][0]["real_ms"], 1.5);
        assert_eq!(report().counters_json(CounterReport::Detailed).unwrap()["requests"][0][0]["status"], "EXECUTED");
    }
}
