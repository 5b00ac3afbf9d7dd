//! The functions of a model by name, and what is asked of a node before it is expanded: which function it calls, and how many
//! tensors it gives.

use crate::outputs::{self, OutputArg};
use crate::wire::{AttrEntry, FunctionDef, NodeDef};
use std::collections::HashMap;

/// The library of a model.
#[derive(Debug, Default)]
pub(crate) struct Functions<'m> {
    by_name: HashMap<&'m str, &'m FunctionDef>,
}

impl<'m> Functions<'m> {
    /// Of a list.
    pub(crate) fn new(list: impl IntoIterator<Item = &'m FunctionDef>) -> Functions<'m> {
        let named = list.into_iter().filter_map(|f| Some((f.signature.as_ref()?.name.as_str(), f)));
        Functions { by_name: named.collect() }
    }
    /// A function by name.
    pub(crate) fn get(&self, name: &str) -> Option<&'m FunctionDef> {
        self.by_name.get(name).copied()
    }
    /// Name and attributes of the function that a node calls, be it by its type or by the attribute `f`.
    pub(crate) fn called<'n>(&self, node: &'n NodeDef) -> Option<(&'n str, &'n [AttrEntry])> {
        match node.op.as_str() {
            "PartitionedCall" | "StatefulPartitionedCall" => {
                let f = node.get("f")?.func.as_ref()?;
                Some((&f.name, &f.attr))
            }
            op => self.by_name.contains_key(op).then_some((op, &node.attr)),
        }
    }
    /// The outputs that the type of a node declares; `None` for a single one.
    pub(crate) fn outputs(&self, node: &NodeDef) -> Option<Vec<OutputArg<'m>>> {
        let signature = self.get(&node.op).and_then(|f| f.signature.as_ref());
        signature.map(|s| outputs::of_signature(&s.output_arg)).or_else(|| outputs::of_type(&node.op))
    }
    /// How many tensors a node gives.
    pub(crate) fn n_outputs(&self, node: &NodeDef) -> usize {
        outputs::n_outputs(self.outputs(node).as_deref(), &node.attr).unwrap_or(1)
    }
}
