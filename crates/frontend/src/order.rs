//! Producers before consumers. Files should be sorted already; this makes it so, and finds cycles.

use crate::source::{SourceGraph, SourceNode, shown};
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Sub-graphs inside of each other are looked into as deep as they are translated.
const MAX_DEPTH: usize = 64;

/// Who makes which value.
pub(crate) struct Producers<'g> {
    graph: &'g SourceGraph,
    of: HashMap<&'g str, usize>,
    /// Nodes by name, where anybody names one.
    named: HashMap<&'g str, usize>,
}

impl<'g> Producers<'g> {
    pub(crate) fn new(graph: &'g SourceGraph, nodes: &'g [SourceNode]) -> Result<Producers<'g>> {
        let mut of: HashMap<&str, usize> = HashMap::new();
        for (i, n) in nodes.iter().enumerate() {
            for name in n.outputs.iter().filter(|o| !o.is_empty()) {
                if of.insert(name, i).is_some() {
                    return Err(Error::invalid(format!("`{}` is produced twice", shown(name))));
                }
            }
        }
        let controlled = nodes.iter().any(|n| !n.controls.is_empty());
        let named = nodes.iter().enumerate().filter(|_| controlled).map(|(i, n)| (n.name.as_str(), i)).collect();
        Ok(Producers { graph, of, named })
    }
    pub(crate) fn get(&self, value: &str) -> Option<usize> {
        self.of.get(self.graph.aliased(value)).copied()
    }
    /// Producers of what a node reads, its sub-graphs included: they may read outer names too.
    pub(crate) fn before(&self, node: &SourceNode) -> Vec<usize> {
        let mut list: Vec<usize> = node.inputs.iter().filter_map(|n| self.get(n)).collect();
        list.extend(node.controls.iter().filter_map(|n| self.named.get(n.as_str()).copied()));
        let mut inner: Vec<usize> = captured(node).into_iter().filter_map(|n| self.get(n)).collect();
        inner.sort_unstable();
        list.extend(inner);
        list
    }
}

/// Numbers of the nodes in an order in which they can be translated.
pub(crate) fn in_order(graph: &SourceGraph, nodes: &[SourceNode]) -> Result<Vec<usize>> {
    let producers = Producers::new(graph, nodes)?;
    let mut state = vec![0u8; nodes.len()];
    let mut out = Vec::with_capacity(nodes.len());
    for root in 0..nodes.len() {
        if state[root] != 0 {
            continue;
        }
        state[root] = 1;
        let mut stack = vec![(root, producers.before(&nodes[root]), 0usize)];
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
                    stack.push((child, producers.before(&nodes[child]), 0));
                }
                1 => {
                    let start = stack.iter().position(|(n, _, _)| *n == child).unwrap_or(0);
                    let all: Vec<&str> = stack[start..].iter().take(8).map(|(n, _, _)| nodes[*n].label()).collect();
                    let text = format!("the graph has a cycle through `{}`", all.join("`, `"));
                    return Err(Error::invalid(text).with_code(97));
                }
                _ => {}
            }
        }
    }
    Ok(out)
}

/// Outer names that the sub-graphs of a node read, sorted.
pub(crate) fn captured(node: &SourceNode) -> Vec<&str> {
    if node.held.is_empty() {
        return vec![];
    }
    let mut names = HashSet::new();
    inner_names(node, &mut names, 0);
    let mut names: Vec<&str> = names.into_iter().filter(|n| !node.outputs.iter().any(|o| o == n)).collect();
    names.sort_unstable();
    names
}

fn inner_names<'n>(node: &'n SourceNode, names: &mut HashSet<&'n str>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    for (_, graph) in node.graphs() {
        let declared: HashSet<&str> = graph
            .nodes
            .iter()
            .flat_map(|n| n.outputs.iter().map(String::as_str))
            .chain(graph.inputs.iter().map(|i| i.name.as_str()))
            .chain(graph.tensors.iter().map(|t| t.name.as_str()))
            .collect();
        let mut inner = HashSet::new();
        for n in &graph.nodes {
            inner.extend(n.inputs.iter().map(String::as_str));
            inner_names(n, &mut inner, depth + 1);
        }
        inner.extend(graph.outputs.iter().flatten().map(|o| o.name.as_str()));
        names.extend(inner.into_iter().filter(|n| !n.is_empty() && !declared.contains(n)));
    }
}
