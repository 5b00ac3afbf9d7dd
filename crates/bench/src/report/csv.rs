//! Tables with semicolons between their cells.

use super::{CounterReport, Report, milliseconds, share, status};
use crate::counters::total;
use carafe::NodeProfile;
use std::fmt::Write;

impl Report {
    /// What was asked for, how it was done and what came out, without times of nodes.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        let parts = [
            ("Command line parameters", &self.command),
            ("Configuration setup", &self.setup),
            ("Execution results", &self.results()),
        ];
        for (heading, rows) in parts {
            let _ = writeln!(out, "{heading}");
            rows.iter().for_each(|(name, value)| {
                let _ = writeln!(out, "{};{}", cell(name), cell(value));
            });
            out.push('\n');
        }
        out
    }

    /// Times of nodes; `None` when the kind of report has none or none were taken.
    pub fn counters_csv(&self, kind: CounterReport) -> Option<String> {
        let tables = match kind {
            CounterReport::None => return None,
            CounterReport::Average => vec![self.measurement.counters.average()],
            CounterReport::Detailed => self.measurement.last.clone(),
        };
        if tables.iter().all(Vec::is_empty) {
            return None;
        }
        let mut out = String::new();
        for table in &tables {
            out.push_str("layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n");
            for p in table {
                let _ = writeln!(out, "{}", row(p));
            }
            let (real, cpu) = total(table);
            let _ = writeln!(out, "Total;;;;{:.3};{:.3}\n", milliseconds(real), milliseconds(cpu));
        }
        Some(out)
    }

    /// Times of nodes in this order, with the share of each; commas stand between cells here, as benchmark_app has it.
    pub fn sorted_csv(rows: &[NodeProfile]) -> String {
        let mut out = "layerName,execStatus,layerType,execType,realTime (ms),cpuTime (ms),proportion (%)\n".to_string();
        let (real, cpu) = total(rows);
        let cell =
            |text: &str| if text.contains(',') { format!("\"{}\"", text.replace('"', "\"\"")) } else { cell(text) };
        for p in rows {
            let (name, kind, kernel) = (cell(&p.name), cell(&p.type_name), cell(&p.kernel));
            let (t, c) = (milliseconds(p.real_time), milliseconds(p.cpu_time));
            let _ = writeln!(out, "{name},{},{kind},{kernel},{t:.3},{c:.3},{}", status(p.status), share(p, real));
        }
        let _ = writeln!(out, "\nTotal time: {:.2} milliseconds", milliseconds(real));
        let _ = writeln!(out, "Total CPU time: {:.2} milliseconds", milliseconds(cpu));
        out
    }
}

fn row(p: &NodeProfile) -> String {
    format!(
        "{};{};{};{};{:.3};{:.3}",
        cell(&p.name),
        status(p.status),
        cell(&p.type_name),
        cell(&p.kernel),
        milliseconds(p.real_time),
        milliseconds(p.cpu_time)
    )
}

// A cell that would end too early stands in quotes, as spreadsheets expect.
fn cell(text: &str) -> String {
    match text.contains([';', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn the_three_parts_stand_behind_their_headings() {
        let text = report().to_csv();
        assert!(text.starts_with(
            "Command line parameters\n-m;m.xml\n\nConfiguration setup\ntopology;m\n\nExecution results\n"
        ));
        assert!(text.ends_with("throughput;500.00\n\n"), "{text}");
    }

    #[test]
    fn sorted_times_have_shares() {
        let text = Report::sorted_csv(&report().measurement.last[0]);
        assert!(text.contains(",Status.EXECUTED,T,k,1.500,1.400,100.00%\n\nTotal time: 1.50 milliseconds\n"), "{text}");
    }

    #[test]
    fn times_of_nodes_have_a_total_and_names_are_quoted() {
        let text = report().counters_csv(CounterReport::Average).unwrap();
        assert!(
            text.contains("\"</script><b>;\"\"n\"\"\";Status.EXECUTED;T;k;1.500;1.400\nTotal;;;;1.500;1.400\n"),
            "{text}"
        );
        assert!(report().counters_csv(CounterReport::Detailed).is_some());
        assert!(report().counters_csv(CounterReport::None).is_none());
    }
}
