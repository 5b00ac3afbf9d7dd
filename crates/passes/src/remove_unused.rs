//! Removes nodes that no result and no sink needs.

use carafe_graph::{Model, Notes, Pass, Result};

/// Takes out nodes that no result and no sink needs.
#[derive(Clone, Copy, Debug)]
pub struct RemoveUnused;

impl Pass for RemoveUnused {
    fn name(&self) -> &'static str {
        "remove_unused"
    }
    fn run(&self, model: &mut Model, _: &mut Notes) -> Result<usize> {
        Ok(model.prune())
    }
}
