//! Events for those who count what models are made of: how often each operation occurs, which one was the cause of a
//! failure, and the error with all names taken out. Nothing of it leaves the process by itself.

use crate::missing::Missing;
use crate::request::ReadRequest;
use crate::source::SourceGraph;
use carafe_graph::Error;
use std::collections::BTreeMap;

/// Category of the events.
const CATEGORY: &str = "carafe";

/// An event with a label and a number.
fn send_event(request: &ReadRequest<'_>, action: &str, label: &str, value: i64) {
    if let Some(send) = request.telemetry {
        send("event", CATEGORY, action, label, value);
    }
}

/// `error_info` with the message.
pub(crate) fn send_error(request: &ReadRequest<'_>, error: &Error) {
    if request.telemetry.is_some() {
        send_event(request, "error_info", &without_names(&error.to_string()), 1);
    }
}

/// `op_count` for every type of the graph and its sub-graphs.
pub(crate) fn count(request: &ReadRequest<'_>, framework: &str, graph: &SourceGraph) {
    if request.telemetry.is_none() {
        return;
    }
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    add(graph, framework, &mut counts, 0);
    counts.iter().for_each(|(label, n)| send_event(request, "op_count", label, *n));
}

/// `error_cause` for every operation that nobody knows.
pub(crate) fn missing(request: &ReadRequest<'_>, framework: &str, missing: &Missing) {
    for (domain, op_type) in missing.ops() {
        send_event(request, "error_cause", &label(framework, domain, op_type), 1);
    }
}

fn add(graph: &SourceGraph, framework: &str, counts: &mut BTreeMap<String, i64>, depth: usize) {
    for node in &graph.nodes {
        *counts.entry(label(framework, &node.domain, &node.op_type)).or_default() += 1;
        if depth < 64 {
            node.graphs().for_each(|(_, graph)| add(graph, framework, counts, depth + 1));
        }
    }
}

fn label(framework: &str, domain: &str, op_type: &str) -> String {
    match domain {
        "" => format!("{framework}_{op_type}"),
        domain => format!("{framework}_{domain}.{op_type}"),
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
