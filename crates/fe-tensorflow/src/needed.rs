//! Which nodes of a graph its outputs need. What nobody needs (initialisation, saving, summaries, training) is not looked at,
//! so that it cannot stop a conversion.

use crate::wire::NodeDef;
use crate::writes::{Writes, needs_no_value};
use std::collections::{HashMap, HashSet};

/// The name of the node that a reference of a graph or a function means, and whether it is a control input.
pub(crate) fn node_of(reference: &str) -> (&str, bool) {
    let (name, control) = reference.strip_prefix('^').map_or((reference, false), |name| (name, true));
    (name.split(':').next().unwrap_or(name), control)
}

/// Operations of control flow by tokens: what depends on them by a control input alone belongs to their branch.
pub(crate) fn is_token(op: &str) -> bool {
    matches!(op, "Switch" | "Merge" | "Enter" | "Exit" | "NextIteration" | "LoopCond")
        || matches!(op, "RefSwitch" | "RefMerge" | "RefEnter" | "RefExit" | "RefNextIteration")
}

/// Marks the nodes that those of `roots` need. Inputs that `is_fed` are given from outside.
pub(crate) fn needed<'r>(
    nodes: &[NodeDef],
    roots: impl IntoIterator<Item = &'r str>,
    is_fed: impl Fn(&str) -> bool,
) -> Vec<bool> {
    let numbers: HashMap<&str, usize> = nodes.iter().enumerate().map(|(i, n)| (n.name.as_str(), i)).collect();
    let writes = Writes::new(nodes);
    let has_tokens = nodes.iter().any(|n| is_token(&n.op));
    let mut marked = vec![false; nodes.len()];
    let mut stack: Vec<usize> = roots.into_iter().filter_map(|name| numbers.get(name).copied()).collect();
    while let Some(i) = stack.pop() {
        if std::mem::replace(&mut marked[i], true) {
            continue;
        }
        let write = writes.before(&nodes[i]);
        stack.extend(write.and_then(|w| numbers.get(w.name.as_str()).copied()));
        // Who reads what was written needs no value from before.
        let skipped = usize::from(write.is_some() || needs_no_value(&nodes[i].op));
        for input in nodes[i].input.iter().skip(skipped).filter(|i| !is_fed(i)) {
            let (name, control) = node_of(input);
            let Some(&from) = numbers.get(name) else { continue };
            // Only what tells the branch of a node is followed against control inputs.
            let op = nodes[from].op.as_str();
            if !control || (has_tokens && (is_token(op) || op == "Identity")) {
                stack.push(from);
            }
        }
    }
    marked
}

/// Operations whose output nobody wants though nobody reads it.
pub(crate) fn is_side_effect(op: &str) -> bool {
    let exact = matches!(
        op,
        "Const"
            | "Placeholder"
            | "Assign"
            | "AssignAdd"
            | "AssignSub"
            | "Assert"
            | "NoOp"
            | "ControlTrigger"
            | "RestoreV2"
            | "Restore"
            | "RestoreSlice"
            | "ShardedFilename"
            | "MergeV2Checkpoints"
            | "VarHandleOp"
            | "Variable"
            | "VariableV2"
            | "VarIsInitializedOp"
            | "IsVariableInitialized"
            | "MergeSummary"
            | "ScalarSummary"
            | "HistogramSummary"
            | "ImageSummary"
            | "AudioSummary"
            | "TensorSummary"
            | "TensorSummaryV2"
            | "PlaceholderWithDefault"
            | "IteratorToStringHandle"
            | "IteratorV2"
            | "OneShotIterator"
    );
    exact
        || op.ends_with("Dataset")
        || op.starts_with("LookupTable") && !op.starts_with("LookupTableFind") && !op.starts_with("LookupTableSize")
        || op.ends_with("HashTable")
        || op.ends_with("HashTableV2")
}

/// Nodes that nobody reads and that give something.
pub(crate) fn terminals(nodes: &[NodeDef], n_outputs: impl Fn(&NodeDef) -> usize) -> Vec<&NodeDef> {
    let read: HashSet<&str> = nodes.iter().flat_map(|n| &n.input).map(|i| node_of(i).0).collect();
    let saves: HashSet<&str> = nodes.iter().filter(|n| is_saving(&n.op)).map(|n| n.name.as_str()).collect();
    // What gives the name of a file once it is written.
    let waits_for_saving =
        |n: &NodeDef| n.input.iter().map(|i| node_of(i)).any(|(n, control)| control && saves.contains(n));
    let is_one = |n: &&NodeDef| {
        !read.contains(n.name.as_str()) && !is_side_effect(&n.op) && n_outputs(n) > 0 && !waits_for_saving(n)
    };
    nodes.iter().filter(is_one).collect()
}

fn is_saving(op: &str) -> bool {
    matches!(op, "Save" | "SaveSlices" | "SaveV2" | "MergeV2Checkpoints")
}
