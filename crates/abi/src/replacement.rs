//! Replacements of parts of a graph that a user names in a file: those of a library as ours, and ours as a table.

use crate::convert::{Arena, attrs_code, attrs_of};
use crate::graph_export::GraphBridge;
use crate::graph_import::{Graph, code_of, value_of};
use crate::host::tell;
use crate::library::Library;
use crate::op_export::c_leak;
use crate::op_import::User;
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{c_text, items, slice, text};
use carafe_graph::{Error, Match, Model, NodeId, Notes, Registry, Replacement, Result};
use std::ffi::c_void;
use std::sync::Arc;

/// Puts something in place of what an entry of a replacement file names, for libraries.
pub trait Replacer: Send + Sync + 'static {
    /// The `id` of the entries it is for.
    fn id(&self) -> &str;
    /// Adds nodes and lets users of the match's outputs read them. In formats with a decoded form the graph is that one,
    /// and an operation of the engine or of an extension is added as `carafe.replacement::opset::Type`.
    fn replace(&self, graph: &mut Graph<'_>, found: &Match) -> Result<()>;
}

struct Foreign {
    id: String,
    table: CarafeReplacement,
    user: User,
}

// SAFETY: the contract lets the table's function be called on any thread; `user` keeps the library mapped.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

/// # Safety
/// The table must be whole, as `CarafeRegistrarFns::add_replacement` asks, and live as long as the library.
pub(crate) unsafe fn import_replacement(
    table: CarafeReplacement,
    library: &Arc<Library>,
) -> Result<Arc<dyn Replacement>> {
    // SAFETY: the caller promises a text.
    let id = unsafe { c_text(table.id, "the id of a replacement")? }.to_string();
    if table.replace.is_none() {
        return Err(Error::invalid(format!("replacement `{id}` has no function")));
    }
    Ok(Arc::new(Foreign { id, table, user: User::new(table.user, library) }))
}

impl Replacement for Foreign {
    fn id(&self) -> &str {
        &self.id
    }
    fn replace(&self, model: &mut Model, found: &Match, notes: &mut Notes) -> Result<()> {
        let Some(replace) = self.table.replace else { return Ok(()) };
        let registry = notes.registry().cloned().unwrap_or_else(|| Arc::new(Registry::new()));
        let mut arena = Arena::default();
        let attrs = attrs_code(found.attrs.iter(), &mut arena)?;
        let inputs: Vec<CarafeValue> = found.inputs.iter().map(|v| code_of(*v)).collect();
        let outputs: Vec<CarafeValue> = found.outputs.iter().map(|v| code_of(*v)).collect();
        let nodes: Vec<u32> = found.nodes.iter().map(|n| n.0).collect();
        let code = CarafeMatch {
            size: size_of::<CarafeMatch>(),
            name: CarafeStr::of(&found.name),
            inputs: inputs.as_ptr(),
            n_inputs: inputs.len(),
            outputs: outputs.as_ptr(),
            n_outputs: outputs.len(),
            nodes: nodes.as_ptr(),
            n_nodes: nodes.len(),
            attrs,
            json: CarafeStr::of(&found.json),
        };
        let bridge = GraphBridge::rewritten(model, registry, notes.is_decoded());
        // SAFETY: the table is whole; bridge and match live until the call returns.
        self.user.library().call("replace", || unsafe { replace(self.user.pointer(), bridge.pointer(), &code) })
    }
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
