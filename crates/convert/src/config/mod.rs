//! Sub-graph replacement by a JSON file (`--transformations_config`): a list of entries, each naming what to match by
//! `points`, by `scope` or not at all (`general`). An entry with `op` replaces the match by one node of that operation; one
//! without runs what an extension registered under the entry's `id`: a replacement, which is handed the match and the
//! attributes, or for `general` a rewrite, which gets the graph alone.
//!
//! In formats with a decoded form the entries work on that, so that what nobody can translate may be replaced. There an
//! operation of ours waits as a node of the domain `carafe.replacement`.

mod entry;
mod matching;
mod update;

pub use entry::ReplacementFile;
pub use update::update_config;

use carafe_graph::{
    Error, FrameworkNode, Match, Model, Notes, Op, Pass, PhasedPass, REPLACEMENT, Registry, Replacement, Result, Value,
};
use carafe_runtime::Core;
use entry::{Entry, Kind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Does what the entries of the file say to a model; how many replacements were made. An entry that matches nothing is
/// reported in the notes, and the conversion goes on.
pub fn apply_config(model: &mut Model, text: &str, core: &Core, notes: &mut Notes) -> Result<usize> {
    ConfigPass::new(ReplacementFile::parse(text)?, core).run(model, notes)
}

/// The entries of a file as a rewrite.
pub struct ConfigPass {
    file: ReplacementFile,
    registry: Registry,
    replacements: Vec<Arc<dyn Replacement>>,
    passes: Vec<PhasedPass>,
    made: AtomicUsize,
    /// What entries name that the model does not have, in words.
    unmatched: Mutex<Vec<String>>,
}

impl std::fmt::Debug for ConfigPass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ConfigPass({:?})", self.file)
    }
}

impl ConfigPass {
    /// With the operations and extensions that are there now.
    pub fn new(file: ReplacementFile, core: &Core) -> ConfigPass {
        ConfigPass {
            file,
            registry: core.registry(),
            replacements: core.replacements(),
            passes: core.passes(),
            made: AtomicUsize::new(0),
            unmatched: Mutex::default(),
        }
    }
    /// How many replacements all runs made.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
    /// What entries name that the model does not have, a line for each.
    pub fn unmatched(&self) -> Vec<String> {
        self.unmatched.lock().map(|lines| lines.clone()).unwrap_or_default()
    }

    // The matches of an entry; what is not there is remembered.
    fn matches(&self, model: &Model, entry: &Entry) -> Result<Vec<Match>> {
        let (found, absent) = matching::find(model, entry)?;
        if let Ok(mut lines) = self.unmatched.lock() {
            let line = |scope: &String| format!("replacement `{}`: no node is in the scope `{scope}`", entry.id);
            lines.extend(absent.iter().map(line));
        }
        Ok(found)
    }

    fn apply(&self, model: &mut Model, entry: &Entry, notes: &mut Notes) -> Result<usize> {
        let Some(op) = &entry.op else { return self.by_extension(model, entry, notes) };
        self.check_op(op)?;
        let matches = self.matches(model, entry)?;
        for m in &matches {
            let made = self.operation(op, m, notes.is_decoded())?;
            let node = model.add_ref(&m.name, made, &m.inputs)?;
            let given = model.node(node).outputs().len();
            if given < m.outputs.len() {
                return Err(Error::invalid(format!("{op} gives {given} outputs, the match has {}", m.outputs.len())));
            }
            for (port, old) in m.outputs.iter().enumerate() {
                model.replace_value(*old, Value { node, port });
            }
        }
        Ok(matches.len())
    }

    fn operation(&self, op: &str, m: &Match, decoded: bool) -> Result<Arc<dyn Op>> {
        if decoded {
            let mut node = FrameworkNode::new(REPLACEMENT, op).with_outputs(m.outputs.len());
            node.attrs = m.attrs.clone();
            return Ok(Arc::new(node));
        }
        let (opset, name) = carafe_frontend::split_name(op)?;
        let class = match opset {
            Some(opset) => self.registry.find(name, opset),
            None => self.registry.newest(name),
        };
        class.ok_or_else(|| Error::not_found(format!("there is no operation `{op}`")))?.create(&m.attrs)
    }

    fn check_op(&self, op: &str) -> Result<()> {
        let (opset, name) = carafe_frontend::split_name(op)?;
        let found = opset.map_or_else(|| self.registry.newest(name), |opset| self.registry.find(name, opset));
        match found {
            Some(_) => Ok(()),
            None => {
                let near = self.registry.near(name).join(", ");
                Err(Error::not_found(format!(
                    "there is no operation `{op}`; near: {near}; load its extension with --extension"
                )))
            }
        }
    }

    // By what extensions registered under the id.
    fn by_extension(&self, model: &mut Model, entry: &Entry, notes: &mut Notes) -> Result<usize> {
        let replacements: Vec<_> = self.replacements.iter().filter(|r| r.id() == entry.id).collect();
        if !replacements.is_empty() {
            let mut made = 0;
            for m in self.matches(model, entry)? {
                for r in &replacements {
                    r.replace(model, &m, notes)?;
                }
                made += 1;
            }
            return Ok(made);
        }
        let Some(found) = self.passes.iter().find(|p| p.pass.name() == entry.id) else {
            return Err(self.nobody());
        };
        if !matches!(entry.kind, Kind::General) {
            return Err(Error::unsupported(
                "an entry by points or scope needs `op`, or an extension's replacement of this id; a rewrite is handed \
                 no match",
            ));
        }
        if !entry.attrs.is_empty() {
            return Err(Error::unsupported(
                "`custom_attributes` cannot be handed to a rewrite; only to an `op` or to an extension's replacement",
            ));
        }
        // A rewrite of a later phase runs there; being named here only turns it on.
        match notes.is_decoded() && found.phase != carafe_graph::Phase::Decoded {
            true => Ok(1),
            false => found.pass.run(model, notes),
        }
    }

    fn nobody(&self) -> Error {
        let ids = self.replacements.iter().map(|r| r.id()).chain(self.passes.iter().map(|p| p.pass.name()));
        let ids: Vec<&str> = ids.collect();
        let known = if ids.is_empty() { "none is loaded".into() } else { format!("loaded: {}", ids.join(", ")) };
        Error::not_found(format!(
            "it has no `op`, and no extension brings a replacement or a rewrite of this name; {known}; use --extension"
        ))
    }
}

impl Pass for ConfigPass {
    fn name(&self) -> &'static str {
        "transformations_config"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        if notes.registry().is_none() {
            *notes = std::mem::take(notes).with_registry(Arc::new(self.registry.clone()));
        }
        let mut made = 0;
        for entry in &self.file.entries {
            let place = || format!("replacement `{}`", entry.id);
            let found = self.apply(model, entry, notes).map_err(|e| e.at(place()))?;
            match found {
                0 => notes.add(|| format!("transformations_config: `{}` matches nothing in this model", entry.id)),
                n => notes.add(|| format!("transformations_config: `{}` replaced {n}", entry.id)),
            }
            made += found;
        }
        if made > 0 {
            model.prune();
            model.infer()?;
        }
        self.made.fetch_add(made, Ordering::Relaxed);
        Ok(made)
    }
}
