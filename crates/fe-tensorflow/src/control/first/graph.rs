//! Looking around in a graph: who makes a value, in which order nodes can run, and a part of it as a graph of its own.

use carafe_frontend::{Held, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Nodes by what they make and by name.
pub(super) struct Producers {
    values: HashMap<String, (usize, usize)>,
    names: HashMap<String, usize>,
}

impl Producers {
    pub(super) fn of(nodes: &[SourceNode]) -> Producers {
        let (mut values, mut names) = (HashMap::new(), HashMap::new());
        for (i, node) in nodes.iter().enumerate() {
            for (port, output) in node.outputs.iter().enumerate().filter(|(_, o)| !o.is_empty()) {
                values.insert(output.clone(), (i, port));
            }
            names.insert(node.name.clone(), i);
        }
        Producers { values, names }
    }
    /// The node and the port that a value comes from.
    pub(super) fn value(&self, name: &str) -> Option<(usize, usize)> {
        self.values.get(name).copied()
    }
    /// Nodes whose values a node reads, sub-graphs included.
    pub(super) fn data<'a>(&'a self, node: &'a SourceNode) -> impl Iterator<Item = usize> + 'a {
        let inner = captured(node);
        let own = node.inputs.iter().filter_map(|n| self.value(n)).map(|(i, _)| i);
        own.chain(inner.into_iter().filter_map(|n| self.value(&n)).map(|(i, _)| i))
    }
    /// Nodes that a node waits for.
    pub(super) fn before<'a>(&'a self, node: &'a SourceNode) -> impl Iterator<Item = usize> + 'a {
        self.data(node).chain(node.controls.iter().filter_map(|n| self.names.get(n).copied()))
    }
    /// The name that a value has behind nodes that hand it on.
    pub(super) fn root<'a>(&self, nodes: &'a [SourceNode], name: &'a str) -> &'a str {
        let mut name = name;
        for _ in 0..nodes.len() {
            match self.value(name).map(|(i, _)| &nodes[i]) {
                Some(node) if node.op_type == "Identity" && !node.inputs.is_empty() => name = &node.inputs[0],
                _ => break,
            }
        }
        name
    }
}

// Outer names that the sub-graphs of a node read.
fn captured(node: &SourceNode) -> Vec<String> {
    let mut names = vec![];
    for (_, graph) in node.graphs() {
        let made = graph.nodes.iter().flat_map(|n| &n.outputs).chain(graph.inputs.iter().map(|i| &i.name));
        let made: HashSet<&String> = made.chain(graph.tensors.iter().map(|t| &t.name)).collect();
        let read = graph.nodes.iter().flat_map(|n| n.inputs.iter().cloned().chain(captured(n)));
        let read = read.chain(graph.outputs.iter().flatten().map(|o| o.name.clone()));
        names.extend(read.filter(|n| !n.is_empty() && !made.contains(n)));
    }
    names
}

/// Numbers of the nodes, each behind those it waits for; `is_back` says which edges close a loop. What lies on another cycle is
/// an error.
pub(super) fn order(
    nodes: &[SourceNode],
    producers: &Producers,
    is_back: impl Fn(usize, usize) -> bool,
) -> Result<Vec<usize>> {
    let mut waits = vec![0usize; nodes.len()];
    let mut readers: Vec<Vec<usize>> = vec![vec![]; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        for from in producers.before(node).filter(|from| !is_back(*from, i)) {
            readers[from].push(i);
            waits[i] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|i| waits[*i] == 0).collect();
    let mut list = Vec::with_capacity(nodes.len());
    while let Some(i) = ready.pop() {
        list.push(i);
        for &reader in &readers[i] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    if list.len() < nodes.len() {
        let on = |i: &usize| waits[*i] > 0;
        let names: Vec<&str> = (0..nodes.len()).filter(on).take(8).map(|i| nodes[i].label()).collect();
        return Err(Error::invalid(format!(
            "the graph has a cycle that no NextIteration closes, through or in front of `{}`",
            names.join("`, `")
        )));
    }
    Ok(list)
}

/// A part of a graph in the making: names that stand for others in it.
#[derive(Default)]
pub(super) struct Part {
    pub(super) renamed: HashMap<String, String>,
}

impl Part {
    /// What a name means in the part.
    pub(super) fn name<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        // A name may stand for one that stands for another; a cycle among them ends somewhere.
        for _ in 0..self.renamed.len() {
            match self.renamed.get(name) {
                Some(of) => name = of,
                None => break,
            }
        }
        name
    }

    /// The graph that gives these values, of the nodes that `is_member` says belong to it; all else is captured. The numbers of
    /// its nodes are added to `taken`.
    pub(super) fn graph(
        &self,
        nodes: &[SourceNode],
        producers: &Producers,
        outputs: &[String],
        is_member: impl Fn(usize) -> bool,
        taken: &mut HashSet<usize>,
    ) -> SourceGraph {
        let outputs: Vec<SourceValue> = outputs.iter().map(|o| SourceValue::unknown(self.name(o))).collect();
        let member = |name: &str| producers.value(name).map(|(i, _)| i).filter(|i| is_member(*i));
        let mut open: Vec<usize> = outputs.iter().filter_map(|o| member(&o.name)).collect();
        let mut seen: HashSet<usize> = open.iter().copied().collect();
        while let Some(i) = open.pop() {
            let read = nodes[i].inputs.iter().cloned().chain(captured(&nodes[i]));
            let next: Vec<usize> = read.filter_map(|n| member(self.name(&n))).collect();
            open.extend(next.into_iter().filter(|i| seen.insert(*i)));
        }
        let mut list: Vec<usize> = seen.into_iter().collect();
        list.sort_unstable();
        taken.extend(&list);
        let names: HashSet<&str> = list.iter().map(|i| nodes[*i].name.as_str()).collect();
        let copy = |i: &usize| {
            let mut node = self.copy(&nodes[*i]);
            node.controls.retain(|c| names.contains(c.as_str()));
            node
        };
        SourceGraph { nodes: list.iter().map(copy).collect(), outputs: Some(outputs), ..SourceGraph::default() }
    }

    fn copy(&self, node: &SourceNode) -> SourceNode {
        let mut node = node.clone();
        node.inputs.iter_mut().for_each(|n| *n = self.name(n).to_string());
        for (_, held) in &mut node.held {
            if let Held::Graph(graph) = held
                && captured_needs(graph, &self.renamed)
            {
                let mut new = (**graph).clone();
                new.nodes = new.nodes.iter().map(|n| self.copy(n)).collect();
                new.outputs.iter_mut().flatten().for_each(|o| o.name = self.name(&o.name).to_string());
                *held = Held::Graph(Rc::new(new));
            }
        }
        node
    }
}

// Whether a sub-graph reads any of the names; values of a graph have names that no other graph of the file makes.
fn captured_needs(graph: &SourceGraph, renamed: &HashMap<String, String>) -> bool {
    let outputs = graph.outputs.iter().flatten().any(|o| renamed.contains_key(&o.name));
    let reads = |n: &SourceNode| {
        n.inputs.iter().any(|i| renamed.contains_key(i)) || n.graphs().any(|(_, g)| captured_needs(g, renamed))
    };
    outputs || graph.nodes.iter().any(reads)
}

/// A constant of a graph.
pub(super) fn tensor(graph: &mut SourceGraph, name: String, value: i32) {
    graph.tensors.push(SourceTensor::new(name, carafe_tensor::Tensor::scalar(value)));
}

/// Takes out outputs of nodes that may be dead, which nobody can ask TensorFlow for: tokens that nothing reads. Where there is
/// nothing else they stay.
pub(super) fn leave_outputs(graph: &mut SourceGraph, is_dead: impl Fn(usize) -> bool) {
    let producers = Producers::of(&graph.nodes);
    let aliases = &graph.aliases;
    let stays = |o: &SourceValue| {
        let producer = producers.value(aliases.get(&o.name).unwrap_or(&o.name));
        !producer.is_some_and(|(i, _)| is_dead(i))
    };
    if let Some(outputs) = graph.outputs.as_mut().filter(|list| list.iter().any(stays)) {
        outputs.retain(stays);
    }
}

/// Takes out nodes of `taken` that nothing left in the graph needs.
pub(super) fn drop_taken(graph: &mut SourceGraph, taken: &HashSet<usize>) {
    let producers = Producers::of(&graph.nodes);
    let mut is_needed = vec![false; graph.nodes.len()];
    let mut open: Vec<usize> = (0..graph.nodes.len()).filter(|i| !taken.contains(i)).collect();
    let outputs = graph.outputs.iter().flatten().map(|o| graph.aliases.get(&o.name).unwrap_or(&o.name));
    open.extend(outputs.filter_map(|o| producers.value(o)).map(|(i, _)| i));
    while let Some(i) = open.pop() {
        if !std::mem::replace(&mut is_needed[i], true) {
            open.extend(producers.data(&graph.nodes[i]));
        }
    }
    let mut is_needed = is_needed.into_iter();
    graph.nodes.retain(|_| is_needed.next().unwrap_or(true));
}
