//! Replacements of parts of a graph that a user names in a file, of this side, as tables for the other.

use crate::convert::attrs_of;
use crate::graph_import::{Graph, value_of};
use crate::host::tell;
use crate::op_export::c_leak;
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{items, slice, text};
use carafe_graph::{Match, NodeId, Result};
use std::ffi::c_void;

/// Puts something in place of what an entry of a replacement file names, for libraries.
pub trait Replacer: Send + Sync + 'static {
    /// The `id` of the entries it is for.
    fn id(&self) -> &str;
    /// Adds nodes and lets users of the match's outputs read them. In formats with a decoded form the graph is that one,
    /// and an operation of the engine or of an extension is added as `carafe.replacement::opset::Type`.
    fn replace(&self, graph: &mut Graph<'_>, found: &Match) -> Result<()>;
}

pub(crate) fn replacement_table<R: Replacer>(replacer: R) -> CarafeReplacement {
    let replacer: &R = Box::leak(Box::new(replacer));
    CarafeReplacement {
        size: size_of::<CarafeReplacement>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        id: c_leak(replacer.id()),
        user: (&raw const *replacer).cast_mut().cast(),
        replace: Some(replace::<R>),
    }
}

unsafe extern "C" fn replace<R: Replacer>(
    user: *mut c_void,
    g: *mut CarafeGraph,
    found: *const CarafeMatch,
) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: the contract passes a live match whose lists are as long as they say; all is copied here.
            let found = unsafe {
                let m = &*found;
                let values =
                    |p, n| -> Result<Vec<_>> { Ok(items(p, n, "values")?.iter().map(|v| value_of(*v)).collect()) };
                Match {
                    name: text(m.name, "the name of a match")?.to_string(),
                    inputs: values(m.inputs, m.n_inputs)?,
                    outputs: values(m.outputs, m.n_outputs)?,
                    nodes: slice(m.nodes, m.n_nodes, "nodes")?.iter().map(|id| NodeId(*id)).collect(),
                    attrs: attrs_of(m.attrs)?,
                    json: text(m.json, "attributes")?.to_string(),
                }
            };
            // SAFETY: `user` is the replacement, which is never freed; the contract passes a live graph.
            unsafe { (*user.cast::<R>()).replace(&mut Graph::new(g), &found) }
        },
        tell,
    )
}
