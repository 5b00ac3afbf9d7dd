//! The report for programs.

use super::{Report, Totals, Verdict};
use serde_json::{Value, json};

impl Report {
    pub fn to_json(&self) -> Value {
        let behaviours: Vec<Value> = self
            .behaviours
            .iter()
            .map(|row| {
                let (verdict, message) = match &row.verdict {
                    Verdict::Passed => ("passed", None),
                    Verdict::Failed(m) => ("failed", Some(m)),
                    Verdict::Skipped(m) => ("skipped", Some(m)),
                };
                json!({"suite": row.suite, "name": row.name, "verdict": verdict, "message": message,
                       "ms": row.time.as_millis() as u64})
            })
            .collect();
        let locations = |list: &[(String, String)]| -> Vec<Value> {
            list.iter().map(|(location, message)| json!({"case": location, "message": message})).collect()
        };
        let ops: Vec<Value> = self
            .ops
            .iter()
            .map(|op| {
                json!({"name": op.name, "opset": op.opset, "passed": op.passed, "failed": locations(&op.failures),
                       "unsupported": locations(&op.unsupported)})
            })
            .collect();
        json!({
            "device": self.device, "full_name": self.full_name, "version": self.version,
            "passed": !self.has_failures(),
            "totals": {"behaviours": totals(self.behaviour_totals(), "skipped"),
                       "operation_cases": totals(self.op_totals(), "unsupported")},
            "behaviours": behaviours, "operations": ops,
        })
    }
}

fn totals(t: Totals, left_out: &str) -> Value {
    json!({"passed": t.passed, "failed": t.failed, left_out: t.left_out})
}
