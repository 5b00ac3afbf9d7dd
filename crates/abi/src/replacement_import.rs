//! Replacements of a library as ours.

use crate::convert::{Arena, attrs_code};
use crate::graph_export::GraphBridge;
use crate::graph_import::code_of;
use crate::library::Library;
use crate::op_import::User;
use crate::tables::*;
use crate::text::c_text;
use carafe_graph::{Error, Match, Model, Notes, Registry, Replacement, Result};
use std::sync::Arc;

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
