//! A rewrite behind a table, as a pass of this side.

use crate::graph_export::GraphBridge;
use crate::library::Library;
use crate::op_import::User;
use crate::status::take_text;
use crate::tables::*;
use crate::text::{c_text, forever, items, opt_c_text};
use carafe_graph::{Error, Model, Notes, Pass, Phase, PhasedPass, Registry, Result, in_bodies};
use std::sync::Arc;

struct ForeignPass {
    name: &'static str,
    root: Option<String>,
    table: CarafePass,
    user: User,
}

// SAFETY: the contract lets the table's functions be called on any thread; `user` keeps the library mapped.
unsafe impl Send for ForeignPass {}
// SAFETY: as above.
unsafe impl Sync for ForeignPass {}

/// # Safety
/// The table must be whole, as `CarafeRegistrarFns::add_pass` asks, and live as long as the library.
pub(crate) unsafe fn import_pass(table: CarafePass, library: &Arc<Library>) -> Result<PhasedPass> {
    // SAFETY: the caller promises texts and lists as the table says; so below.
    let name = unsafe { c_text(table.name, "the name of a pass")? };
    let phase = match table.phase {
        CARAFE_PHASE_DECODED => Phase::Decoded,
        CARAFE_PHASE_FRONT => Phase::Front,
        CARAFE_PHASE_MIDDLE => Phase::Middle,
        CARAFE_PHASE_BACK => Phase::Back,
        other => return Err(Error::invalid(format!("pass `{name}` is for phase {other}, which does not exist"))),
    };
    if table.run.is_none() == table.at.is_none() {
        return Err(Error::invalid(format!("pass `{name}` needs either `run` or `at`")));
    }
    // SAFETY: as above.
    let root = unsafe { opt_c_text(table.root, "the root of a pass")? }.map(str::to_string);
    // SAFETY: as above.
    let names = |p, n| unsafe {
        items(p, n, "names of passes")?.iter().map(|n| Ok(c_text(*n, "the name of a pass")?.to_string())).collect()
    };
    let (before, after): (Result<Vec<String>>, Result<Vec<String>>) =
        (names(table.before, table.n_before), names(table.after, table.n_after));
    let pass = ForeignPass { name: forever(name), root, table, user: User::new(table.user, library) };
    Ok(PhasedPass { phase, before: before?, after: after?, enabled: table.disabled == 0, pass: Arc::new(pass) })
}

impl Pass for ForeignPass {
    fn name(&self) -> &'static str {
        self.name
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let registry = notes.registry().cloned().unwrap_or_else(|| Arc::new(Registry::new()));
        let fired = match self.table.run {
            Some(run) => {
                let bridge = GraphBridge::rewritten(model, registry, notes.is_decoded());
                let mut fired = 0;
                let (library, user) = (self.user.library(), self.user.pointer());
                // SAFETY: the table is whole, the bridge lives until the call returns.
                library.call("run", || unsafe { run(user, bridge.pointer(), &mut fired) })?;
                fired
            }
            None => {
                in_bodies(model, &mut |body| self.walk(body, &registry, notes))? + self.walk(model, &registry, notes)?
            }
        };
        if fired > 0 {
            model.prune();
            model.infer()?;
        }
        Ok(fired)
    }
}

impl ForeignPass {
    fn walk(&self, model: &mut Model, registry: &Arc<Registry>, notes: &mut Notes) -> Result<usize> {
        let Some(at) = self.table.at else { return Ok(0) };
        let mut fired = 0;
        for id in model.topological_order()? {
            let Some(node) = model.get(id) else { continue };
            if self.root.as_deref().is_some_and(|root| !node.op().type_name().eq_ignore_ascii_case(root)) {
                continue;
            }
            let location = node.location();
            let bridge = GraphBridge::rewritten(model, registry.clone(), notes.is_decoded());
            let mut outcome = CARAFE_NO_MATCH;
            // SAFETY: the table is whole, the bridge lives until the call returns.
            let called = self
                .user
                .library()
                .call("at", || unsafe { at(self.user.pointer(), bridge.pointer(), id.0, &mut outcome) });
            called.map_err(|e| e.at(location.clone()))?;
            match outcome {
                CARAFE_SKIPPED => {
                    let why = take_text();
                    notes.add(|| format!("{}: {location} stays: {why}", self.name));
                }
                CARAFE_DONE => {
                    notes.add(|| format!("{}: fired at {location}", self.name));
                    fired += 1;
                }
                _ => {}
            }
        }
        Ok(fired)
    }
}
