//! The report for a terminal: a line for each suite and operation that is not whole, failures in full, totals last.

use super::{OpRow, Report, Row, Totals, Verdict, sum};
use std::fmt::Write;

impl Report {
    /// With `all`, also a line for every check and every operation.
    pub fn to_text(&self, all: bool) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "device {} {} {}\n", self.device, self.version, self.full_name);
        if !self.behaviours.is_empty() {
            head(&mut out, "behaviour", "skipped");
        }
        for (name, rows) in self.suites() {
            line(&mut out, name, sum(rows.iter().map(Row::totals)));
            for row in rows {
                match &row.verdict {
                    Verdict::Skipped(why) => drop(writeln!(out, "    skipped {}: {why}", row.name)),
                    Verdict::Failed(_) => drop(writeln!(out, "    FAILED  {}", row.name)),
                    Verdict::Passed if all => drop(writeln!(out, "    passed  {}", row.name)),
                    Verdict::Passed => {}
                }
            }
        }
        if !self.ops.is_empty() {
            let _ = writeln!(out);
            head(&mut out, "operation", "unsupported");
        }
        let whole = |op: &&OpRow| op.failures.is_empty() && op.unsupported.is_empty();
        for op in self.ops.iter().filter(|op| all || !whole(op)) {
            line(&mut out, &format!("{} ({})", op.name, op.opset), op.totals());
        }
        let n_whole = self.ops.iter().filter(whole).count();
        if n_whole > 0 && !all {
            let others = if n_whole == self.ops.len() { "all" } else { "all others" };
            let _ = writeln!(out, "{others}: {n_whole} operations passed every case");
        }
        let failures = self.failures();
        if !failures.is_empty() {
            let _ = writeln!(out, "\nfailures");
        }
        for (name, message) in failures {
            let _ = writeln!(out, "  {name}\n    {}", message.trim_end().replace('\n', "\n    "));
        }
        let _ = writeln!(out);
        for (what, totals, left_out) in
            [("behaviours", self.behaviour_totals(), "skipped"), ("operation cases", self.op_totals(), "unsupported")]
        {
            let Totals { passed, failed, left_out: n } = totals;
            let _ = writeln!(out, "{what}: {passed} passed, {failed} failed, {n} {left_out}");
        }
        out
    }
}

fn head(out: &mut String, what: &str, left_out: &str) {
    let _ = writeln!(out, "{what:<42} {:>7} {:>7} {left_out:>12}", "passed", "failed");
}

fn line(out: &mut String, name: &str, t: Totals) {
    let _ = writeln!(out, "{name:<42} {:>7} {:>7} {:>12}", t.passed, t.failed, t.left_out);
}
