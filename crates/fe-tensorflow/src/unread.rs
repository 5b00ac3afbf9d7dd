//! Outputs that nobody reads lose their names, so that a rule need not make them.

use carafe_frontend::{Held, SourceGraph, SourceNode};
use std::collections::{HashMap, HashSet};

/// Sub-graphs are looked into as deep as they are translated.
const MAX_DEPTH: usize = 64;
/// More outputs than this nobody has.
const MOST_OUTPUTS: usize = 1 << 16;

/// Leaves names to outputs that are read, given or `wanted`, and to all of a node of which nothing is read. An operation that
/// nobody knows has as many outputs as are read.
pub(crate) fn leave_unread(graph: &mut SourceGraph, wanted: &[String]) {
    let mut read: HashSet<String> = HashSet::new();
    graph.nodes.iter().for_each(|n| reads(n, &mut read, 0));
    read.extend(graph.outputs.iter().flatten().map(|o| o.name.clone()));
    read.extend(wanted.iter().cloned());
    let mut most: HashMap<&str, usize> = HashMap::new();
    for (node, port) in read.iter().filter_map(|name| name.rsplit_once(':')) {
        let Some(port) = port.parse::<usize>().ok().filter(|p| *p < MOST_OUTPUTS) else { continue };
        let n = most.entry(node).or_default();
        *n = (*n).max(port + 1);
    }
    for node in &mut graph.nodes {
        let n = most.get(node.name.as_str()).copied().unwrap_or(0);
        for port in node.outputs.len()..n {
            node.outputs.push(crate::expand::value_name(&node.name, port));
        }
        if node.outputs.iter().any(|o| read.contains(o)) {
            node.outputs.iter_mut().filter(|o| !read.contains(*o)).for_each(String::clear);
        }
    }
}

fn reads(node: &SourceNode, read: &mut HashSet<String>, depth: usize) {
    read.extend(node.inputs.iter().cloned());
    for (_, held) in &node.held {
        let Held::Graph(graph) = held else { continue };
        if depth < MAX_DEPTH {
            graph.nodes.iter().for_each(|n| reads(n, read, depth + 1));
            read.extend(graph.outputs.iter().flatten().map(|o| o.name.clone()));
        }
    }
}
