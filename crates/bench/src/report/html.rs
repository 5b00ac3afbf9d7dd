//! One page that needs nothing else: no script, no file beside it, no network. Names come out of models, so all text is escaped.

use super::{Report, milliseconds};
use crate::latency::histogram;
use carafe::{NodeProfile, NodeStatus};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const STYLE: &str = include_str!("style.css");
/// Rows of the table of nodes that are shown at once; the others are folded away.
const SHOWN: usize = 30;

impl Report {
    /// The page: numbers, a histogram of latencies, the time of each type and of each node.
    pub fn to_html(&self) -> String {
        let find = |name: &str| self.setup.iter().find(|(k, _)| k == name).map_or("", |(_, v)| v.as_str());
        let title = format!("{} on {}", find("topology"), find("target device"));
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <title>Benchmark of {0}</title><style>{STYLE}</style></head>\n<body>\n<h1>{0}</h1>\n<p class=\"sub\">{1}</p>\n",
            escaped(&title),
            escaped(&format!("{} inferences in {}", self.measurement.latencies.len(), time(self.measurement.duration)))
        );
        self.cards(&mut out);
        self.latencies(&mut out);
        self.nodes(&mut out);
        for (heading, rows) in [("Setup", &self.setup), ("Results", &self.results()), ("Command line", &self.command)] {
            let _ = write!(out, "<h2>{heading}</h2>\n<table>");
            for (name, value) in rows {
                let _ = writeln!(out, "<tr><td>{}</td><td class=\"name\">{}</td></tr>", escaped(name), escaped(value));
            }
            out.push_str("</table>\n");
        }
        out.push_str("</body></html>\n");
        out
    }

    fn cards(&self, out: &mut String) {
        let l = &self.latency;
        let mut cards = vec![
            ("throughput, samples/s".to_string(), format!("{:.2}", self.measurement.throughput())),
            ("median latency".into(), time(l.median)),
            ("average latency".into(), time(l.average)),
            ("shortest".into(), time(l.min)),
            ("longest".into(), time(l.max)),
        ];
        if l.percent != 50 {
            cards.insert(2, (format!("{} of 100 not above", l.percent), time(l.at_percent)));
        }
        if let Some(first) = self.measurement.first {
            cards.push(("first inference".into(), time(first)));
        }
        cards.extend(self.stages.iter().map(|(name, t)| (name.clone(), time(*t))));
        out.push_str("<div class=\"cards\">");
        for (name, value) in cards {
            let _ = write!(out, "<div class=\"card\"><b>{}</b><span>{}</span></div>", escaped(&value), escaped(&name));
        }
        out.push_str("</div>\n");
    }

    fn latencies(&self, out: &mut String) {
        const WIDTH: f64 = 960.0;
        const HEIGHT: f64 = 220.0;
        const BARS: usize = 48;
        let bars = histogram(&self.measurement.latencies, BARS);
        let Some(most) = bars.iter().map(|b| b.count).max().filter(|n| *n > 0) else { return };
        let _ = write!(
            out,
            "<h2>Latencies</h2>\n<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"histogram of latencies\">",
            HEIGHT + 24.0
        );
        let step = WIDTH / BARS as f64;
        for (i, b) in bars.iter().enumerate() {
            let height = (HEIGHT - 10.0) * b.count as f64 / most as f64;
            let _ = write!(
                out,
                "<rect{} x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} to {}: {}</title></rect>",
                if i + 1 == BARS { " class=\"tail\"" } else { "" },
                i as f64 * step,
                HEIGHT - height,
                step - 1.5,
                height,
                time(b.from),
                time(b.to),
                b.count
            );
        }
        let _ = writeln!(
            out,
            "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/><text x=\"0\" y=\"{0}\">{1}</text>\
             <text x=\"{2}\" y=\"{0}\" text-anchor=\"middle\">{3}</text><text x=\"{WIDTH}\" y=\"{0}\" text-anchor=\"end\">{4}, longest {5}</text></svg>",
            HEIGHT + 17.0,
            time(bars[0].from),
            WIDTH / 2.0,
            time(bars[BARS / 2].from),
            time(bars[BARS - 1].from),
            time(self.latency.max)
        );
    }

    fn nodes(&self, out: &mut String) {
        let mut nodes = self.measurement.counters.average();
        nodes.retain(|p| p.status == NodeStatus::Executed);
        if nodes.is_empty() {
            out.push_str("<h2>Times of nodes</h2>\n<p class=\"sub\">None were taken; -pc takes them.</p>\n");
            return;
        }
        let total: Duration = nodes.iter().map(|p| p.real_time).sum();
        let mut types: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
        for p in &nodes {
            let of_type = types.entry(&p.type_name).or_default();
            *of_type = (of_type.0 + 1, of_type.1 + p.real_time);
        }
        let mut types: Vec<_> = types.into_iter().collect();
        types.sort_by_key(|(_, (_, t))| std::cmp::Reverse(*t));
        out.push_str("<h2>Times of types</h2>\n<table><tr><th>Type</th><th class=\"n\">Nodes</th><th class=\"n\">Time</th><th class=\"n\">Share</th><th></th></tr>\n");
        let longest = types.first().map_or(Duration::ZERO, |(_, (_, t))| *t);
        for (name, (count, t)) in &types {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td class=\"n\">{count}</td>{}</tr>",
                escaped(name),
                bar(*t, total, longest)
            );
        }
        let inferences = self.measurement.counters.inferences();
        let _ = writeln!(
            out,
            "</table>\n<h2>Times of nodes</h2>\n<p class=\"sub\">{} nodes, {} together; means of {inferences} inferences.</p>",
            nodes.len(),
            time(total)
        );
        nodes.sort_by_key(|p| std::cmp::Reverse(p.real_time));
        let longest = nodes.first().map_or(Duration::ZERO, |p| p.real_time);
        node_table(out, &nodes[..nodes.len().min(SHOWN)], total, longest);
        if nodes.len() > SHOWN {
            let _ = write!(out, "<details><summary>{} more</summary>", nodes.len() - SHOWN);
            node_table(out, &nodes[SHOWN..], total, longest);
            out.push_str("</details>\n");
        }
    }
}

fn node_table(out: &mut String, nodes: &[NodeProfile], total: Duration, longest: Duration) {
    out.push_str("<table><tr><th>Node</th><th>Type</th><th>Kernel</th><th class=\"n\">Time</th><th class=\"n\">Share</th><th></th></tr>\n");
    for p in nodes {
        let _ = writeln!(
            out,
            "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"name\">{}</td>{}</tr>",
            escaped(&p.name),
            escaped(&p.type_name),
            escaped(&p.kernel),
            bar(p.real_time, total, longest)
        );
    }
    out.push_str("</table>\n");
}

// Time, share and bar, as three cells.
fn bar(t: Duration, total: Duration, longest: Duration) -> String {
    let part = |of: Duration| 100.0 * t.as_secs_f64() / of.as_secs_f64().max(1e-12);
    format!(
        "<td class=\"n\">{}</td><td class=\"n\">{:.1} %</td><td class=\"chart\"><span class=\"bar\" style=\"width:{:.2}%\"></span></td>",
        time(t),
        part(total),
        part(longest)
    )
}

// In the unit that leaves few digits.
fn time(d: Duration) -> String {
    match milliseconds(d) {
        ms if ms < 1.0 => format!("{:.1} us", ms * 1e3),
        ms if ms < 1000.0 => format!("{ms:.2} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;

    #[test]
    fn the_page_stands_alone_and_escapes_names() {
        let page = report().to_html();
        assert!(
            page.contains("Content-Security-Policy") && !page.contains("<script") && !page.contains("</script><b>")
        );
        assert!(page.contains("&lt;/script&gt;&lt;b&gt;;&quot;n&quot;"));
        assert!(
            page.contains("histogram of latencies") && page.contains("<b>2.00 ms</b><span>median latency"),
            "{page}"
        );
    }
}
