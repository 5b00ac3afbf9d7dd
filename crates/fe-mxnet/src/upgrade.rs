//! What MXNet does to symbols of old versions when it loads them.

use crate::symbol::{Entry, Node, Symbol};

/// From this version on auxiliary states are nodes of the file.
const STATES_ARE_NODES: i64 = 900;
/// From this version on `axis` of argmax and argmin may count from the end.
const AXES_MAY_BE_NEGATIVE: i64 = 905;

/// Inputs that old files leave out, behind those that they list.
const STATES: &[(&str, usize, &[&str])] = &[
    ("BatchNorm", 3, &["moving_mean", "moving_var"]),
    ("BatchNorm_v1", 3, &["moving_mean", "moving_var"]),
    ("CuDNNBatchNorm", 3, &["moving_mean", "moving_var"]),
    ("IdentityAttachKLSparseReg", 1, &["moving_avg"]),
];

pub(crate) fn upgrade(symbol: &mut Symbol) {
    if symbol.version < AXES_MAY_BE_NEGATIVE {
        for node in symbol.nodes.iter_mut().filter(|n| n.op == "argmax" || n.op == "argmin") {
            node.attrs.retain(|(name, value)| !(name == "axis" && value == "-1"));
        }
    }
    if symbol.version < STATES_ARE_NODES {
        list_states(symbol);
    }
}

// Variables of the states stand in front of the nodes that read them, so numbers change.
fn list_states(symbol: &mut Symbol) {
    let mut nodes: Vec<Node> = vec![];
    let mut moved: Vec<usize> = vec![];
    for mut node in std::mem::take(&mut symbol.nodes) {
        node.inputs.iter_mut().for_each(|e| e.node = moved[e.node]);
        let lacks = STATES.iter().find(|(op, listed, _)| node.op == *op && node.inputs.len() == *listed);
        for state in lacks.iter().flat_map(|(.., states)| states.iter()) {
            node.inputs.push(Entry { node: nodes.len(), output: 0 });
            nodes.push(Node { op: "null".into(), name: format!("{}_{state}", node.name), ..Node::default() });
        }
        moved.push(nodes.len());
        nodes.push(node);
    }
    symbol.heads.iter_mut().for_each(|e| e.node = moved[e.node]);
    symbol.nodes = nodes;
}
