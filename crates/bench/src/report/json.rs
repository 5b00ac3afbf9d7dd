//! One JSON object.

use super::{CounterReport, Report, milliseconds, share, status};
use crate::counters::total;
use crate::latency::{Latency, histogram};
use carafe::NodeProfile;
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Report {
    /// Everything as numbers: times in milliseconds.
    pub fn to_json(&self) -> Value {
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

    /// The file that benchmark_app writes with `-json_stats`: three groups of texts.
    pub fn stats_json(&self) -> Value {
        json!({
            "cmd_options": texts(&self.command),
            "configuration_setup": texts(&self.setup),
            "execution_results": texts(&self.results()),
        })
    }

    /// Times of nodes, as benchmark_app writes them; `None` when the kind of report has none or none were taken.
    pub fn counters_json(&self, kind: CounterReport) -> Option<Value> {
        let m = &self.measurement;
        match kind {
            CounterReport::None => None,
            _ if m.last.iter().all(Vec::is_empty) => None,
            CounterReport::Average => {
                Some(json!({"report_type": "average", "avg_performance": table(&m.counters.average(), false)}))
            }
            CounterReport::Detailed => {
                let requests: Vec<Value> = m.last.iter().map(|rows| table(rows, false)).collect();
                Some(json!({"report_type": "detailed", "detailed_performance": requests}))
            }
        }
    }

    /// Times of nodes in this order, with the share of each.
    pub fn sorted_json(rows: &[NodeProfile]) -> Value {
        json!({"report_type": "sorted", "avg_performance": table(rows, true)})
    }
}

fn texts(rows: &[(String, String)]) -> Map<String, Value> {
    rows.iter().map(|(k, v)| (k.clone(), json!(v))).collect()
}

// Nodes and totals under the names of benchmark_app, numbers as texts.
fn table(rows: &[NodeProfile], shares: bool) -> Value {
    let (real, cpu) = total(rows);
    let ms = |d: Duration| format!("{:.3}", milliseconds(d));
    let nodes: Vec<Value> = rows
        .iter()
        .map(|p| {
            let mut row = json!({
                "name": p.name, "node_type": p.type_name, "status": status(p.status), "real_time": ms(p.real_time),
                "cpu_time": ms(p.cpu_time), "exec_type": p.kernel,
            });
            if shares {
                row["%"] = json!(share(p, real));
            }
            row
        })
        .collect();
    json!({"nodes": nodes, "total_real_time": ms(real), "total_cpu_time": ms(cpu)})
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
    }

    #[test]
    fn files_have_the_names_of_benchmark_app() {
        let stats = report().stats_json();
        assert_eq!(stats["cmd_options"]["-m"], "m.xml");
        assert_eq!(stats["configuration_setup"]["topology"], "m");
        assert_eq!(stats["execution_results"]["throughput"], "500.00");
        let detailed = report().counters_json(CounterReport::Detailed).unwrap();
        assert_eq!(detailed["detailed_performance"][0]["nodes"][0]["status"], "Status.EXECUTED");
        let average = report().counters_json(CounterReport::Average).unwrap();
        assert_eq!(average["avg_performance"]["nodes"][0]["real_time"], "1.500");
        assert_eq!(average["avg_performance"]["total_cpu_time"], "1.400");
        let sorted = Report::sorted_json(&report().measurement.last[0]);
        assert_eq!(
            (&sorted["report_type"], &sorted["avg_performance"]["nodes"][0]["%"]),
            (&json!("sorted"), &json!("100.00%"))
        );
    }
}
