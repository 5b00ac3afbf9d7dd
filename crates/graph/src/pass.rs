//! A rewrite of a whole model, and the list that runs rewrites in order. In debug builds the verifier runs after each one
//! and names the pass that broke the graph.

use crate::error::Result;
use crate::model::Model;

/// A rewrite. It says how often it fired; why it did not goes to `notes`.
pub trait Pass: Send + Sync {
    /// Verb and object, e.g. `fold_constants`.
    fn name(&self) -> &'static str;
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize>;
}

/// What passes tell about themselves, for `--log_level DEBUG`.
#[derive(Debug, Default)]
pub struct Notes {
    pub lines: Vec<String>,
    enabled: bool,
}

impl Notes {
    pub fn enabled() -> Notes {
        Notes { lines: vec![], enabled: true }
    }
    /// The text is only made when somebody listens.
    pub fn add(&mut self, line: impl FnOnce() -> String) {
        if self.enabled {
            self.lines.push(line());
        }
    }
}

/// Runs passes in the order they stand in the list.
pub fn run_passes(model: &mut Model, passes: &[&dyn Pass], notes: &mut Notes) -> Result<()> {
    for pass in passes {
        let fired = pass.run(model, notes).map_err(|e| e.at(format!("pass `{}`", pass.name())))?;
        notes.add(|| format!("{}: {fired}", pass.name()));
        if cfg!(debug_assertions) {
            crate::verify(model).map_err(|e| e.at(format!("after pass `{}`", pass.name())))?;
        }
    }
    Ok(())
}
