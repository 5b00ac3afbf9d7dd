//! What came out, and its three forms: text for a terminal, JSON for programs, HTML for people who read later.

mod html;
mod json;
mod text;

use std::time::Duration;

/// How a device did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub device: String,
    pub full_name: String,
    pub version: String,
    pub behaviours: Vec<Row>,
    pub ops: Vec<OpRow>,
}

/// One behaviour.
#[derive(Clone, Debug)]
pub struct Row {
    pub suite: &'static str,
    pub name: &'static str,
    pub verdict: Verdict,
    pub time: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed(String),
    /// The device says that it cannot; with what it says.
    Skipped(String),
}

/// The cases of one version of an operation.
#[derive(Clone, Debug, Default)]
pub struct OpRow {
    pub name: String,
    pub opset: String,
    pub passed: usize,
    /// Place and message.
    pub failures: Vec<(String, String)>,
    /// Place, and why the device does not take it.
    pub unsupported: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: usize,
    pub failed: usize,
    /// Skipped behaviours, or cases of operations the device does not take.
    pub left_out: usize,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.left_out += other.left_out;
    }
}

impl Row {
    pub fn totals(&self) -> Totals {
        let mut t = Totals::default();
        match &self.verdict {
            Verdict::Passed => t.passed = 1,
            Verdict::Failed(_) => t.failed = 1,
            Verdict::Skipped(_) => t.left_out = 1,
        }
        t
    }
}

impl OpRow {
    pub fn totals(&self) -> Totals {
        Totals { passed: self.passed, failed: self.failures.len(), left_out: self.unsupported.len() }
    }
}

impl Report {
    pub fn behaviour_totals(&self) -> Totals {
        sum(self.behaviours.iter().map(Row::totals))
    }
    pub fn op_totals(&self) -> Totals {
        sum(self.ops.iter().map(OpRow::totals))
    }
    pub fn has_failures(&self) -> bool {
        self.behaviour_totals().failed + self.op_totals().failed > 0
    }
    /// Names of the behaviour suites with their rows, in the order they ran.
    pub fn suites(&self) -> Vec<(&'static str, &[Row])> {
        self.behaviours.chunk_by(|a, b| a.suite == b.suite).map(|rows| (rows[0].suite, rows)).collect()
    }
    /// Every failure: `suite::name` or an operation with the place of its case, and the message.
    pub fn failures(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for row in &self.behaviours {
            if let Verdict::Failed(message) = &row.verdict {
                all.push((format!("{}::{}", row.suite, row.name), message.clone()));
            }
        }
        for op in &self.ops {
            all.extend(
                op.failures.iter().map(|(location, m)| (format!("{} ({}) {location}", op.name, op.opset), m.clone())),
            );
        }
        all
    }
}

fn sum(all: impl Iterator<Item = Totals>) -> Totals {
    let mut totals = Totals::default();
    all.for_each(|t| totals.add(t));
    totals
}
