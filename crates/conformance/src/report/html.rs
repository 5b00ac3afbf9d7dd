//! The report as one HTML file that needs nothing else. Every text in it comes from devices and models, so all of it is
//! escaped.

use super::{OpRow, Report, Row, Totals, Verdict, sum};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:.6rem 0 1.6rem;width:100%}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.passed{color:#176b2c}.failed{color:#b00020;font-weight:600}.skipped,.unsupported{color:#8a6100}
pre{white-space:pre-wrap;margin:0;font-size:13px}summary{cursor:pointer;font-weight:600;margin:.4rem 0}small{color:#666}";

impl Report {
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        let title = format!("Conformance of {}", self.device);
        let word = if self.has_failures() { "failed" } else { "passed" };
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head>\
             <body>\n<h1>{0}: <span class=\"{word}\">{word}</span></h1>\n<p>{1} <small>version {2}</small></p>\n",
            escaped(&title),
            escaped(&self.full_name),
            escaped(&self.version)
        );
        self.summary(&mut out);
        self.failure_list(&mut out);
        for (name, rows) in self.suites() {
            behaviours(&mut out, name, rows);
        }
        operations(&mut out, &self.ops);
        out.push_str("</body></html>\n");
        out
    }

    fn summary(&self, out: &mut String) {
        out.push_str(
            "<h2>Summary</h2>\n<table><tr><th>Suite</th><th class=\"n\">Passed</th><th class=\"n\">Failed</th>",
        );
        out.push_str("<th class=\"n\">Skipped or unsupported</th></tr>\n");
        for (name, rows) in self.suites() {
            total_row(out, name, sum(rows.iter().map(Row::totals)));
        }
        total_row(out, "all behaviours", self.behaviour_totals());
        total_row(out, "operation cases", self.op_totals());
        out.push_str("</table>\n");
    }

    fn failure_list(&self, out: &mut String) {
        let failures = self.failures();
        if failures.is_empty() {
            return;
        }
        out.push_str("<h2>Failures</h2>\n<table><tr><th>Check</th><th>Message</th></tr>\n");
        for (name, message) in failures {
            let _ = writeln!(
                out,
                "<tr><td class=\"failed\">{}</td><td><pre>{}</pre></td></tr>",
                escaped(&name),
                escaped(&message)
            );
        }
        out.push_str("</table>\n");
    }
}

fn total_row(out: &mut String, name: &str, t: Totals) {
    let class = if t.failed > 0 { "failed" } else { "passed" };
    let _ = writeln!(
        out,
        "<tr><td class=\"{class}\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        escaped(name),
        t.passed,
        t.failed,
        t.left_out
    );
}

fn behaviours(out: &mut String, suite: &str, rows: &[Row]) {
    let _ = writeln!(out, "<details><summary>{} ({} checks)</summary>\n<table>", escaped(suite), rows.len());
    for row in rows {
        let (word, message) = match &row.verdict {
            Verdict::Passed => ("passed", ""),
            Verdict::Failed(m) => ("failed", m.as_str()),
            Verdict::Skipped(m) => ("skipped", m.as_str()),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"{word}\">{word}</td><td class=\"n\">{} ms</td><td><pre>{}</pre></td></tr>",
            escaped(&row.name.replace('_', " ")),
            row.time.as_millis(),
            escaped(message)
        );
    }
    out.push_str("</table></details>\n");
}

fn operations(out: &mut String, ops: &[OpRow]) {
    if ops.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<details><summary>operations ({})</summary>\n<table><tr><th>Operation</th><th>Opset</th>",
        ops.len()
    );
    out.push_str(
        "<th class=\"n\">Passed</th><th class=\"n\">Failed</th><th class=\"n\">Unsupported</th><th>Why not</th></tr>\n",
    );
    for op in ops {
        let t = op.totals();
        let class = match (t.failed, t.left_out) {
            (0, 0) => "passed",
            (0, _) => "unsupported",
            _ => "failed",
        };
        let why = op.unsupported.first().map_or("", |(_, why)| why.as_str());
        let _ = writeln!(
            out,
            "<tr><td class=\"{class}\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td><pre>{}</pre></td></tr>",
            escaped(&op.name),
            escaped(&op.opset),
            t.passed,
            t.failed,
            t.left_out,
            escaped(why)
        );
    }
    out.push_str("</table></details>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn texts_of_devices_cannot_break_the_page() {
        let verdict = Verdict::Failed("<script>alert(1)</script>".into());
        let row = Row { suite: "compile", name: "a_b", verdict, time: Duration::ZERO };
        let page = Report { device: "A&B".into(), behaviours: vec![row], ..Report::default() }.to_html();
        assert!(page.contains("A&amp;B") && page.contains("&lt;script&gt;") && !page.contains("<script>"));
    }
}
