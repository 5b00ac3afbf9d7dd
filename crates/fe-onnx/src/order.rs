//! Producers before consumers. Files should be sorted already; this makes it so, and finds cycles.

use crate::wire::NodeProto;
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};

pub(crate) fn in_order(nodes: &[NodeProto]) -> Result<Vec<usize>> {
    let mut producer: HashMap<&str, usize> = HashMap::new();
    for (i, n) in nodes.iter().enumerate() {
        for name in n.output.iter().filter(|o| !o.is_empty()) {
            if producer.insert(name, i).is_some() {
                return Err(Error::invalid(format!("`{name}` is produced twice")));
            }
        }
    }
    let mut state = vec![0u8; nodes.len()];
    let mut out = Vec::with_capacity(nodes.len());
    for root in 0..nodes.len() {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, before(&nodes[root], &producer), 0usize)];
        while let Some((node, list, next)) = stack.last_mut() {
            let Some(&child) = list.get(*next) else {
                state[*node] = 2;
                out.push(*node);
                stack.pop();
                continue;
            };
            *next += 1;
            match state[child] {
                0 => {
                    state[child] = 1;
                    stack.push((child, before(&nodes[child], &producer), 0));
                }
                1 => {
                    let start = stack.iter().position(|(n, _, _)| *n == child).unwrap_or(0);
                    let shown: Vec<&str> = stack[start..].iter().take(8).map(|(n, _, _)| label(&nodes[*n])).collect();
                    return Err(Error::invalid(format!("the graph has a cycle through `{}`", shown.join("`, `"))));
                }
                _ => {}
            }
        }
    }
    Ok(out)
}

fn label(node: &NodeProto) -> &str {
    let name = node.name.as_deref().filter(|n| !n.is_empty());
    name.or(node.output.first().map(String::as_str)).unwrap_or("")
}

// Producers of what a node reads, its sub-graphs included: they may read outer names too.
fn before(node: &NodeProto, producer: &HashMap<&str, usize>) -> Vec<usize> {
    let mut list: Vec<usize> = node.input.iter().filter_map(|n| producer.get(n.as_str()).copied()).collect();
    let mut inner: Vec<usize> = captured(node).into_iter().filter_map(|n| producer.get(n).copied()).collect();
    inner.sort_unstable();
    list.extend(inner);
    list
}

/// Outer names that the sub-graphs of a node read, sorted.
pub(crate) fn captured(node: &NodeProto) -> Vec<&str> {
    let mut names = HashSet::new();
    inner_names(node, &mut names, 0);
    let mut names: Vec<&str> = names.into_iter().filter(|n| !node.output.iter().any(|o| o == n)).collect();
    names.sort_unstable();
    names
}

fn inner_names<'n>(node: &'n NodeProto, names: &mut HashSet<&'n str>, depth: usize) {
    if depth > 64 {
        return;
    }
    for graph in node.attribute.iter().filter_map(|a| a.g.as_deref()) {
        let declared: HashSet<&str> = graph
            .node
            .iter()
            .flat_map(|n| n.output.iter().map(String::as_str))
            .chain(graph.input.iter().filter_map(|i| i.name.as_deref()))
            .chain(graph.initializer.iter().filter_map(|i| i.name.as_deref()))
            .collect();
        let mut inner = HashSet::new();
        for n in &graph.node {
            inner.extend(n.input.iter().map(String::as_str));
            inner_names(n, &mut inner, depth + 1);
        }
        inner.extend(graph.output.iter().filter_map(|o| o.name.as_deref()));
        names.extend(inner.into_iter().filter(|n| !declared.contains(n)));
    }
}
