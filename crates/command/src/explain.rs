//! `--explain`: which rule, operation, kernel, device and library served each node, as a table or as JSON.

use carafe::NodeExplained;
use serde_json::{Value, json};
use std::fmt::Write;

/// One line a node, the reasons below.
pub(crate) fn table(rows: &[NodeExplained]) -> String {
    let mut lines = vec![["node", "from", "rule", "operation", "of", "kernel"].map(str::to_string)];
    for row in rows {
        let or_dash = |s: &str| if s.is_empty() { "-".to_string() } else { s.to_string() };
        let kernel = match (&row.device, &row.kernel) {
            (Some(device), Some(kernel)) => format!("{device} {kernel}"),
            (Some(device), None) => device.clone(),
            (None, _) => "-".to_string(),
        };
        let rule = or_dash(row.rule.as_deref().unwrap_or_default());
        let (op, from) = (or_dash(&row.op), or_dash(&row.op_from));
        lines.push([row.name.clone(), or_dash(&row.source_type), rule, op, from, kernel]);
    }
    let mut widths = [0; 6];
    for line in &lines {
        widths.iter_mut().zip(line).for_each(|(w, cell)| *w = (*w).max(cell.chars().count()));
    }
    let mut out = String::new();
    for (i, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
        let Some(row) = i.checked_sub(1).and_then(|i| rows.get(i)) else { continue };
        let kernel = row.kernel_from.as_deref().filter(|from| *from != "built-in");
        let kernel = kernel.map(|from| format!("the kernel comes from {from}"));
        for why in row.why.iter().chain(&kernel) {
            let _ = writeln!(out, "    {why}");
        }
    }
    out
}

pub(crate) fn list(rows: &[NodeExplained]) -> Value {
    let row = |r: &NodeExplained| {
        json!({
            "name": r.name, "source": r.source, "source_type": r.source_type, "rule": r.rule, "op": r.op,
            "op_from": r.op_from, "device": r.device, "kernel": r.kernel, "kernel_from": r.kernel_from, "why": r.why,
        })
    };
    rows.iter().map(row).collect()
}
