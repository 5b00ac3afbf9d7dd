//! Events for those who count what models are made of, see `carafe_frontend::send_event`.

use crate::types;
use crate::wire::GraphProto;
use carafe_frontend::{Missing, ReadRequest, send_event};
use std::collections::BTreeMap;

/// `op_count` for every type of the graph and its sub-graphs.
pub(crate) fn count(options: &ReadRequest<'_>, graph: &GraphProto) {
    if options.telemetry.is_none() {
        return;
    }
    let mut counts = BTreeMap::new();
    add(graph, &mut counts, 0);
    for (label, n) in counts {
        send_event(options, "op_count", &label, n);
    }
}

/// `error_cause` for every operation that nobody knows.
pub(crate) fn missing(options: &ReadRequest<'_>, missing: &Missing) {
    for (domain, op_type) in missing.ops() {
        send_event(options, "error_cause", &label(domain, op_type), 1);
    }
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
