//! Files for Google's Model Explorer: a graph collection, with times and kernels as attributes.

use crate::graph::{Graph, Kind};
use serde_json::{Value, json};

/// The graph collection as JSON. Scopes become nested layers, bodies graphs of their own.
pub fn model_explorer(graph: &Graph) -> Value {
    let graphs: Vec<Value> = graph.parts.iter().enumerate().map(|(part, title)| one(graph, part, title)).collect();
    json!({"label": graph.name, "graphs": graphs})
}

fn one(graph: &Graph, part: usize, title: &str) -> Value {
    let nodes: Vec<Value> =
        (0..graph.boxes.len()).filter(|i| graph.boxes[*i].part == part).map(|i| node(graph, i)).collect();
    json!({"id": if title.is_empty() { "model" } else { title }, "nodes": nodes})
}

fn node(graph: &Graph, i: usize) -> Value {
    let b = &graph.boxes[i];
    let pair = |key: &str, value: &str| json!({"key": key, "value": value});
    let parts: Vec<&str> = b.name.split('/').filter(|p| !p.is_empty()).collect();
    let namespace = match b.kind {
        Kind::Op | Kind::Unknown => parts[..parts.len().saturating_sub(1)].join("/"),
        _ => String::new(),
    };
    let incoming: Vec<Value> = graph
        .edges
        .iter()
        .filter(|e| e.to == i)
        .map(|e| {
            json!({
                "sourceNodeId": e.from.to_string(),
                "sourceNodeOutputId": e.from_port.to_string(),
                "targetNodeInputId": e.to_port.to_string(),
            })
        })
        .collect();
    let mut attrs = vec![pair("name", &b.name), pair("opset", &b.opset)];
    attrs.extend(b.attrs.iter().map(|(k, v)| pair(k, v)));
    for (key, value) in [("device", &b.device), ("kernel", &b.kernel), ("in the file", &b.source)] {
        if !value.is_empty() {
            attrs.push(pair(key, value));
        }
    }
    attrs.extend(b.time_us.map(|t| pair("time (us)", &format!("{t:.1}"))));
    attrs.extend(b.weights.iter().map(|w| pair(&format!("constant {}", w.port), &format!("{} {}", w.fact, w.name))));
    let outputs: Vec<Value> = b
        .outputs
        .iter()
        .enumerate()
        .map(|(port, fact)| json!({"id": port.to_string(), "attrs": [pair("tensor_shape", fact)]}))
        .collect();
    json!({
        "id": i.to_string(),
        "label": b.op,
        "namespace": namespace,
        "incomingEdges": incoming,
        "attrs": attrs,
        "outputsMetadata": outputs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::small;

    #[test]
    fn nodes_lie_in_their_scopes_and_know_what_they_read() {
        let all = model_explorer(&small());
        let add = &all["graphs"][0]["nodes"][1];
        assert_eq!(
            (add["namespace"].as_str(), add["incomingEdges"][0]["sourceNodeId"].as_str()),
            (Some("a/b"), Some("0"))
        );
        assert_eq!(add["outputsMetadata"][0]["attrs"][0]["value"], "f32[1,3]");
    }
}
