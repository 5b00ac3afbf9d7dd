//! The part of a graph that some of its nodes and values need. What lies behind them is left out before anything is
//! translated, so that it cannot stop a conversion that does not want it.

use crate::order::Producers;
use crate::source::{LeftOut, SourceGraph, SourceValue, shown};
use std::collections::{HashMap, HashSet};

/// Leaves out every node that none of these names needs. Inputs stay; those that lost all their readers are marked. A name
/// that neither a value nor a node has may mean something in the translated model, so then all is kept.
pub(crate) fn cut(graph: &mut SourceGraph, wanted: &[String]) {
    let Some(needed) = needed(graph, wanted) else { return };
    let by_kept = |kept: bool| -> HashSet<String> {
        let nodes = graph.nodes.iter().zip(&needed).filter(|(_, n)| **n == kept);
        nodes.flat_map(|(node, _)| node.reads()).map(|name| graph.aliased(name).to_string()).collect()
    };
    let (still, before) = (by_kept(true), by_kept(false));
    let is_named = |v: &SourceValue| wanted.iter().any(|w| w == shown(&v.name));
    for input in &mut graph.inputs {
        input.cut_off = before.contains(&input.name) && !still.contains(&input.name) && !is_named(input);
    }
    keep_outputs(graph, &needed, &still, wanted);
    let (mut i, mut after) = (0, String::new());
    let left_out = &mut graph.left_out;
    graph.nodes.retain(|node| {
        let last = std::mem::replace(&mut after, node.label().to_string());
        i += 1;
        if !needed[i - 1] {
            let (name, op_type) = (node.label().to_string(), node.full_type());
            left_out.push(LeftOut { name, op_type, after: last, why: "left out: no output that is kept needs it" });
        }
        needed[i - 1]
    });
    let given: HashSet<String> = graph.outputs.iter().flatten().map(|o| graph.aliased(&o.name).to_string()).collect();
    graph.tensors.retain(|t| still.contains(&t.name) || given.contains(&t.name));
}

// Declared outputs whose nodes stay, and what the wanted nodes give.
fn keep_outputs(graph: &mut SourceGraph, needed: &[bool], still: &HashSet<String>, wanted: &[String]) {
    let Some(mut outputs) = graph.outputs.take() else { return };
    let gone: HashSet<&str> = graph
        .nodes
        .iter()
        .zip(needed)
        .filter(|(_, n)| !**n)
        .flat_map(|(n, _)| &n.outputs)
        .map(String::as_str)
        .collect();
    outputs.retain(|o| !gone.contains(graph.aliased(&o.name)));
    let have: HashSet<String> = outputs.iter().map(|o| graph.aliased(&o.name).to_string()).collect();
    let nodes = graph.nodes.iter().zip(needed).filter(|(_, n)| **n).map(|(node, _)| node);
    let means = |text: &str, name: &str| {
        let port = |rest: Option<(&str, &str)>| rest.is_some_and(|(a, b)| a == name || b == name);
        text == name || port(text.split_once(':')) || port(text.rsplit_once(':'))
    };
    for node in nodes {
        for value in node.outputs.iter().filter(|o| !o.is_empty() && !have.contains(*o)) {
            let is_wanted = wanted.iter().any(|w| means(w, shown(value)) || means(w, node.label()));
            if is_wanted && !still.contains(value) {
                outputs.push(SourceValue::unknown(value));
            }
        }
    }
    graph.outputs = Some(outputs);
}

// Which nodes the names need; `None` when all shall stay.
fn needed(graph: &SourceGraph, wanted: &[String]) -> Option<Vec<bool>> {
    let producers = Producers::new(graph, &graph.nodes).ok()?;
    let mut stack = vec![];
    let names = Names::new(graph);
    for name in wanted {
        stack.extend(names.find(name)?);
    }
    let mut needed = vec![false; graph.nodes.len()];
    while let Some(i) = stack.pop() {
        if !std::mem::replace(&mut needed[i], true) {
            stack.extend(producers.before(&graph.nodes[i]));
        }
    }
    // The last node that stays gives an output; without one there would be no model.
    let last = needed.iter().rposition(|n| *n)?;
    let is_model = graph.nodes[last].outputs.iter().any(|o| !o.is_empty());
    keep_sinks(graph, &producers, &mut needed);
    is_model.then_some(needed)
}

// A node without outputs, such as one that stores a value for the next inference, stays with whoever makes its first input, and
// keeps all that it reads.
fn keep_sinks(graph: &SourceGraph, producers: &Producers<'_>, needed: &mut [bool]) {
    let is_sink =
        |i: &usize| graph.nodes[*i].outputs.iter().all(String::is_empty) && !graph.nodes[*i].inputs.is_empty();
    let mut sinks: Vec<usize> = (0..graph.nodes.len()).filter(is_sink).collect();
    while let Some(at) = sinks.iter().position(|i| producers.get(&graph.nodes[*i].inputs[0]).is_some_and(|p| needed[p]))
    {
        let mut stack = vec![sinks.swap_remove(at)];
        while let Some(i) = stack.pop() {
            if !std::mem::replace(&mut needed[i], true) {
                stack.extend(producers.before(&graph.nodes[i]));
            }
        }
    }
}

/// What names mean: the latest value of that name, and nodes of that name.
struct Names<'g> {
    /// Numbers of nodes; that of a value which no node makes is `None`.
    values: HashMap<&'g str, Option<usize>>,
    nodes: HashMap<&'g str, usize>,
}

impl<'g> Names<'g> {
    fn new(graph: &'g SourceGraph) -> Names<'g> {
        let mut values: HashMap<&str, Option<usize>> = HashMap::new();
        for input in &graph.inputs {
            values.insert(shown(&input.name), None);
            values.extend(input.label.as_deref().map(|l| (l, None)));
        }
        values.extend(graph.tensors.iter().map(|t| (t.name.as_str(), None)));
        let mut nodes = HashMap::new();
        for (i, node) in graph.nodes.iter().enumerate() {
            values.extend(node.outputs.iter().filter(|o| !shown(o).is_empty()).map(|o| (shown(o), Some(i))));
            nodes.entry(node.label()).or_insert(i);
        }
        let made: Vec<(&str, &str)> = graph
            .outputs
            .iter()
            .flatten()
            .filter_map(|o| Some((o.label.as_deref()?, o.name.as_str())))
            .chain(graph.aliases.iter().map(|(name, of)| (name.as_str(), of.as_str())))
            .collect();
        for (label, of) in made {
            if let Some(node) = values.get(of).copied() {
                values.entry(label).or_insert(node);
            }
        }
        Names { values, nodes }
    }
    // `0:conv` and `conv:0` name ports.
    fn find(&self, name: &str) -> Option<Vec<usize>> {
        let whole = |name: &str| match (self.values.get(name), self.nodes.get(name)) {
            (None, None) => None,
            (value, node) => Some(value.copied().flatten().into_iter().chain(node.copied()).collect::<Vec<_>>()),
        };
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let input = || name.split_once(':').filter(|(port, _)| is_port(port)).and_then(|(_, name)| whole(name));
        let output = || name.rsplit_once(':').filter(|(_, port)| is_port(port)).and_then(|(name, _)| whole(name));
        whole(name).or_else(input).or_else(output)
    }
}
