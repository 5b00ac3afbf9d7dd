//! Variables that a graph writes and then reads. A write is a node whose output is the new value; who depends on it, by a control
//! input or by data, reads that output instead of the variable. Writes that nobody reads behind have no effect on this run and are
//! left out.

use crate::needed::node_of;
use crate::wire::{FunctionDef, NodeDef};
use std::collections::{HashMap, HashSet};

/// Nodes looked at between a reader and a write.
const MOST_STEPS: usize = 1 << 16;

/// Operations that write the variable of their first input.
pub(crate) fn is_write(op: &str) -> bool {
    writes_resource(op) || matches!(op, "Assign" | "AssignAdd" | "AssignSub")
}

/// Writes that have no output of their own in TensorFlow.
pub(crate) fn writes_resource(op: &str) -> bool {
    matches!(op, "AssignVariableOp" | "AssignAddVariableOp" | "AssignSubVariableOp")
}

/// Operations on a variable to which its value makes no difference: the variable is no input of theirs.
pub(crate) fn needs_no_value(op: &str) -> bool {
    matches!(op, "Assign" | "AssignVariableOp" | "IsVariableInitialized" | "VarIsInitializedOp")
}

// Operations that read the variable of their first input.
fn is_reader(op: &str) -> bool {
    is_write(op) || matches!(op, "ReadVariableOp" | "Identity" | "ResourceGather" | "ResourceGatherNd")
}

/// The nodes of one graph or function, and which variables it writes.
#[derive(Default)]
pub(crate) struct Writes<'m> {
    nodes: HashMap<&'m str, &'m NodeDef>,
    written: HashSet<&'m str>,
}

impl<'m> Writes<'m> {
    pub(crate) fn new(nodes: &'m [NodeDef]) -> Writes<'m> {
        let writes = nodes.iter().filter(|n| is_write(&n.op));
        Writes {
            nodes: nodes.iter().map(|n| (n.name.as_str(), n)).collect(),
            written: writes.filter_map(|n| n.input.first().map(String::as_str)).collect(),
        }
    }

    /// The node of a name.
    pub(crate) fn node(&self, name: &str) -> Option<&'m NodeDef> {
        self.nodes.get(name).copied()
    }

    /// The write that happens last of those before a node reads the variable; `None` where the node reads no variable, or
    /// one that nothing has written before.
    pub(crate) fn before(&self, node: &NodeDef) -> Option<&'m NodeDef> {
        let variable = node.input.first().filter(|v| is_reader(&node.op) && self.written.contains(v.as_str()))?;
        let found = self.above(node, variable);
        let is_last =
            |w: &&NodeDef| !found.iter().any(|other| self.above(other, variable).iter().any(|a| a.name == w.name));
        found.iter().copied().find(is_last)
    }

    // Writes of the variable that a node depends on, but for those behind others.
    fn above(&self, node: &NodeDef, variable: &str) -> Vec<&'m NodeDef> {
        let mut left: Vec<&str> = node.input.iter().map(|i| node_of(i).0).collect();
        let mut met: HashSet<String> = HashSet::new();
        let mut found = vec![];
        while let Some(name) = left.pop() {
            let Some(before) = self.node(name).filter(|_| met.len() < MOST_STEPS && met.insert(name.into())) else {
                continue;
            };
            match is_write(&before.op) && before.input.first().is_some_and(|v| v == variable) {
                true => found.push(before),
                false => left.extend(before.input.iter().map(|i| node_of(i).0)),
            }
        }
        found
    }
}

/// An argument that a function both reads and writes, so that its value goes from one iteration of a loop to the next.
pub(crate) fn carried<'m>(body: &'m FunctionDef, marked: &[bool]) -> Option<&'m str> {
    let first = |n: &'m NodeDef| n.input.first().map(|i| node_of(i).0);
    let written: HashSet<&str> = body.node_def.iter().filter(|n| is_write(&n.op)).filter_map(first).collect();
    let needed = body.node_def.iter().zip(marked).filter(|(n, m)| **m && is_reader(&n.op));
    needed.filter_map(|(n, _)| first(n)).find(|variable| written.contains(variable))
}
