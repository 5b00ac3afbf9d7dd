//! One HTML page: style, script and data stand in it, and a policy forbids it to load anything else. Places are computed here, so that
//! the script only draws. Names come out of models: they reach the page as JSON in which no tag can begin, and the script sets them as
//! text.

use crate::graph::{Graph, Kind, NodeBox};
use crate::sheets::{Item, Sheet, sheets};
use carafe::short_number;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";
/// Models up to this size are also drawn for readers without scripts.
const MOST_DRAWN: usize = 400;

/// The page of a graph. It works from a file, and opened with `#node=NAME` it shows that node.
pub fn page(graph: &Graph) -> String {
    let all = sheets(graph);
    // In JSON a `<` occurs in texts only.
    let data = data(graph, &all).to_string().replace('<', "\\u003c");
    let title = escaped(if graph.name.is_empty() { "model" } else { &graph.name });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>\n\
         <header><h1 title=\"{title}\">{title}</h1><span id=\"crumbs\"></span>\
         <input id=\"search\" type=\"search\" placeholder=\"Search ( / )\" aria-label=\"search nodes\" autocomplete=\"off\" spellcheck=\"false\">\
         <select id=\"colours\" aria-label=\"colours\"><option value=\"type\">Colour by type</option>\
         <option value=\"device\">Colour by device</option><option value=\"time\">Colour by time</option></select>\
         <button id=\"level\">Scopes</button><button id=\"fit\" title=\"f\">Fit</button><button id=\"whole\" title=\"w\">Whole</button></header>\n\
         <main><svg id=\"view\" aria-label=\"graph\"></svg><div id=\"legend\"></div>{}<pre id=\"selftest\" hidden></pre></main>\n\
         <aside id=\"panel\" aria-live=\"polite\"></aside>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n</body></html>\n",
        static_picture(graph, &all[0])
    )
}

/// Texts that occur often, each once.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    at: HashMap<String, usize>,
}

impl Texts {
    fn add(&mut self, text: &str) -> usize {
        if let Some(i) = self.at.get(text) {
            return *i;
        }
        self.at.insert(text.to_string(), self.list.len());
        self.list.push(text.to_string());
        self.list.len() - 1
    }
}

fn data(graph: &Graph, all: &[Sheet]) -> Value {
    let mut texts = Texts::default();
    // Number 0 is no text at all.
    texts.add("");
    let nodes: Vec<Value> = graph.boxes.iter().map(|b| node(b, &mut texts)).collect();
    let edges: Vec<usize> = graph.edges.iter().flat_map(|e| [e.from, e.from_port, e.to, e.to_port]).collect();
    let scopes = (all.len() > graph.parts.len()).then_some(graph.parts.len());
    json!({
        "name": graph.name,
        "facts": facts(graph),
        "ops": graph.summary.ops.iter().collect::<Vec<_>>(),
        "nodes": nodes,
        "edges": edges,
        "sheets": all.iter().map(sheet).collect::<Vec<_>>(),
        "scopes": scopes,
        "text": texts.list,
    })
}

fn node(b: &NodeBox, texts: &mut Texts) -> Value {
    let kind = match b.kind {
        Kind::Op => 0,
        Kind::Input => 1,
        Kind::Output => 2,
        Kind::Constant => 3,
        Kind::Unknown => 4,
    };
    let outputs: Vec<usize> = b.outputs.iter().map(|o| texts.add(o)).collect();
    let attrs: Vec<usize> = b.attrs.iter().flat_map(|(k, v)| [texts.add(k), texts.add(v)]).collect();
    let notes: Vec<usize> = b.notes.iter().map(|n| texts.add(n)).collect();
    let bodies: Vec<(usize, usize)> = b.bodies.iter().map(|(name, part)| (texts.add(name), *part)).collect();
    let weights: Vec<Value> = b
        .weights
        .iter()
        .map(|w| {
            let mut row = json!({"name": w.name, "port": w.port, "fact": w.fact, "seen": w.seen, "len": w.len});
            if w.seen > 0 {
                row["min"] = json!(short_number(w.min));
                row["max"] = json!(short_number(w.max));
            }
            if !w.values.is_empty() {
                row["values"] = w.values.iter().map(|x| short_number(*x)).collect();
            }
            if !w.bars.is_empty() {
                row["bars"] = json!(w.bars);
            }
            row
        })
        .collect();
    let time = b.time_us.map(|t| (t * 10.0).round() / 10.0);
    json!([
        b.name,
        texts.add(&b.op),
        texts.add(&b.opset),
        kind,
        b.part,
        outputs,
        attrs,
        weights,
        bodies,
        texts.add(&b.source),
        notes,
        texts.add(&b.device),
        texts.add(&b.kernel),
        time,
        texts.add(&b.ran_as),
        b.fused_into
    ])
}

// A tenth of a pixel is more than anyone sees.
fn rounded(x: f64) -> Value {
    let tenth = (x * 10.0).round() / 10.0;
    if tenth.fract() == 0.0 { json!(tenth as i64) } else { json!(tenth) }
}

fn sheet(s: &Sheet) -> Value {
    let items: Vec<usize> = s
        .items
        .iter()
        .flat_map(|item| match item {
            Item::Node(i) => [0, *i],
            Item::Group(g) => [1, *g],
            Item::From(i) => [2, *i],
            Item::To(i) => [3, *i],
        })
        .collect();
    let list = |values: &mut dyn Iterator<Item = f64>| values.map(rounded).collect::<Value>();
    let route = |points: &Vec<(f64, f64)>| list(&mut points.iter().flat_map(|p| [p.0, p.1]));
    json!({
        "title": s.title,
        "parent": s.parent,
        "nodes": s.nodes,
        "items": items,
        "x": list(&mut s.layout.at.iter().map(|p| p.0)),
        "y": list(&mut s.layout.at.iter().map(|p| p.1)),
        "w": list(&mut s.sizes.iter().map(|p| p.0)),
        "h": list(&mut s.sizes.iter().map(|p| p.1)),
        "edges": s.edges.iter().flat_map(|e| [e.0, e.1]).collect::<Vec<_>>(),
        "routes": s.layout.routes.iter().map(route).collect::<Vec<_>>(),
        "size": [rounded(s.layout.size.0), rounded(s.layout.size.1)],
    })
}

fn facts(graph: &Graph) -> Vec<(String, String)> {
    let s = &graph.summary;
    let mut rows: Vec<(String, String)> = vec![];
    let mut row = |name: &str, value: String| rows.push((name.into(), value));
    for p in &s.inputs {
        row("input", format!("{}: {}[{}]", p.name, p.ty, p.shape));
    }
    for p in &s.outputs {
        row("output", format!("{}: {}[{}]", p.name, p.ty, p.shape));
    }
    row("nodes", graph.boxes.iter().filter(|b| matches!(b.kind, Kind::Op | Kind::Unknown)).count().to_string());
    row("parameters", format!("{} ({} bytes)", grouped(s.parameters), grouped(s.weight_bytes)));
    row("MACs", s.macs.map_or("unknown, a shape is open".into(), grouped));
    row("opsets", s.opsets.iter().map(|(name, n)| format!("{name} ({n})")).collect::<Vec<_>>().join(", "));
    if !s.unknown.is_empty() {
        let names: Vec<String> = s.unknown.iter().map(|((t, _), nodes)| format!("{} x {t}", nodes.len())).collect();
        row("nobody knows", names.join(", "));
    }
    if !graph.device.is_empty() {
        row("device", graph.device.clone());
    }
    rows
}

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

fn static_picture(graph: &Graph, s: &Sheet) -> String {
    if s.items.len() > MOST_DRAWN {
        return "<noscript><p>This picture is drawn by a script.</p></noscript>".into();
    }
    let mut out = format!(
        "<noscript><div id=\"picture\"><svg width=\"{0:.0}\" height=\"{1:.0}\" viewBox=\"-4 -4 {0:.0} {1:.0}\"><g class=\"node\"><path class=\"edge\" d=\"",
        s.layout.size.0 + 8.0,
        s.layout.size.1 + 8.0
    );
    for route in &s.layout.routes {
        for (i, p) in route.iter().enumerate() {
            let _ = write!(out, "{}{:.0} {:.0}", if i == 0 { "M" } else { "L" }, p.0, p.1);
        }
    }
    out.push_str("\"/>");
    for (n, item) in s.items.iter().enumerate() {
        let (Item::Node(i), (x, y), (w, h)) = (item, s.layout.at[n], s.sizes[n]) else { continue };
        let b = &graph.boxes[*i];
        let shown = if matches!(b.kind, Kind::Input | Kind::Output) { &b.name } else { &b.op };
        let _ = write!(
            out,
            "<rect x=\"{:.0}\" y=\"{y:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" rx=\"6\" fill=\"#e4e9f1\"/><text x=\"{x:.0}\" y=\"{:.0}\">{}</text>",
            x - w / 2.0,
            y + h / 2.0 + 4.0,
            escaped(&shown.chars().take(34).collect::<String>())
        );
    }
    out.push_str("</g></svg></div></noscript>");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::small;

    #[test]
    fn no_tag_of_a_name_reaches_the_page() {
        let text = page(&small());
        assert!(!text.contains("<script>alert") && !text.contains("<img"), "{text}");
        assert_eq!(text.matches("</script>").count(), 2);
    }

    #[test]
    fn the_data_is_json_with_every_node_and_edge() {
        let text = page(&small());
        let from = text.find("id=\"data\">").unwrap() + 10;
        let json: Value = serde_json::from_str(&text[from..from + text[from..].find("</script>").unwrap()]).unwrap();
        assert_eq!((json["nodes"].as_array().unwrap().len(), json["edges"].as_array().unwrap().len()), (4, 12));
        assert_eq!(json["sheets"][0]["x"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn the_script_stays_small_and_the_policy_stands_in_the_page() {
        assert!(SCRIPT.len() < 40_000, "{}", SCRIPT.len());
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("http://") || SCRIPT.matches("http").count() == 1);
        assert!(page(&small()).contains(POLICY));
    }
}
