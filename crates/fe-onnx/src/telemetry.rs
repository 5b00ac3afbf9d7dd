//! Events for those who count what models are made of: how often each operation occurs, which one was the cause of a
//! failure, and the error with all names taken out. Nothing of it leaves the process by itself.

use crate::types;
use crate::wire::GraphProto;
use carafe_frontend::{Missing, ReadOptions};
use carafe_graph::Error;
use std::collections::BTreeMap;

/// Category of the events.
const CATEGORY: &str = "carafe";

/// `op_count` for every type of the graph and its sub-graphs.
pub(crate) fn count(options: &ReadOptions<'_>, graph: &GraphProto) {
    let Some(send) = options.telemetry else { return };
    let mut counts = BTreeMap::new();
    add(graph, &mut counts, 0);
    for (label, n) in counts {
        send("event", CATEGORY, "op_count", &label, n);
    }
}

/// `error_cause` for every operation that nobody knows.
pub(crate) fn missing(options: &ReadOptions<'_>, missing: &Missing) {
    let Some(send) = options.telemetry else { return };
    for (domain, op_type) in missing.ops() {
        send("event", CATEGORY, "error_cause", &label(domain, op_type), 1);
    }
}

/// `error_info` with the message.
pub(crate) fn error(options: &ReadOptions<'_>, error: &Error) {
    let Some(send) = options.telemetry else { return };
    send("event", CATEGORY, "error_info", &without_names(&error.to_string()), 1);
}

fn add(graph: &GraphProto, counts: &mut BTreeMap<String, i64>, depth: usize) {
    for node in &graph.node {
        let domain = types::domain(node.domain.as_deref());
        *counts.entry(label(&domain, node.op_type.as_deref().unwrap_or(""))).or_default() += 1;
        if depth < 64 {
            node.attribute.iter().filter_map(|a| a.g.as_deref()).for_each(|g| add(g, counts, depth + 1));
        }
    }
}

fn label(domain: &str, op_type: &str) -> String {
    match domain {
        "" => format!("onnx_{op_type}"),
        domain => format!("onnx_{domain}.{op_type}"),
    }
}

// Names of nodes, tensors and files stand between backquotes; they belong to the user.
fn without_names(message: &str) -> String {
    let mut parts = message.split('`');
    let mut out = parts.next().unwrap_or_default().to_string();
    while let Some(_name) = parts.next() {
        out.push_str("`*`");
        out.push_str(parts.next().unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_out() {
        assert_eq!(without_names("node `a/b` (Relu): `x` is missing"), "node `*` (Relu): `*` is missing");
        assert_eq!(without_names("cut `off"), "cut `*`");
    }
}
