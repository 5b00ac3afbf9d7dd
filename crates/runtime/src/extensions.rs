//! Extensions of a `Core`: added by path, in lists or as objects, each once, in any order. What a model needs of them is
//! written into it, so that whoever reads it elsewhere is told what is missing.

use crate::core::Core;
use crate::kernels::kernels_of;
use carafe_abi::{Extension, load_extension};
use carafe_frontend::{Mapping, Rule};
use carafe_graph::{
    Error, Model, Notes, Pass, PassChoice, Phase, PhasedPass, Replacement, Result, RtTree, order_passes, run_passes,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders in which a library given by its bare name is looked for, before the system's own ones.
const SEARCH_PATH: &str = "CARAFE_EXTENSION_PATH";
/// Libraries that every program loads.
const ALWAYS: &str = "CARAFE_EXTENSIONS";
/// Where a model says which extensions it needs.
const NEEDED: &str = "carafe_extensions";

/// What `Core::add_extension` takes: a path, an object, or a list of either.
pub trait IntoExtensions {
    fn into_extensions(self) -> Result<Vec<Extension>>;
}

impl IntoExtensions for Extension {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Ok(vec![self])
    }
}
impl IntoExtensions for &Path {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Ok(vec![load_extension(&find(self))?])
    }
}
impl IntoExtensions for PathBuf {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        self.as_path().into_extensions()
    }
}
impl IntoExtensions for &PathBuf {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        self.as_path().into_extensions()
    }
}
impl IntoExtensions for &str {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Path::new(self).into_extensions()
    }
}
impl IntoExtensions for String {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Path::new(&self).into_extensions()
    }
}
impl<T: IntoExtensions> IntoExtensions for Vec<T> {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        let mut all = Vec::new();
        for item in self {
            all.extend(item.into_extensions()?);
        }
        Ok(all)
    }
}
impl<T: IntoExtensions, const N: usize> IntoExtensions for [T; N] {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Vec::from(self).into_extensions()
    }
}

// `acme` and `libacme.so` are looked for in the folders of the search path.
fn find(given: &Path) -> PathBuf {
    if given.components().count() > 1 || given.exists() {
        return given.to_path_buf();
    }
    let name = given.to_string_lossy();
    let file = format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let folders = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    for folder in std::env::split_paths(&folders).filter(|p| !p.as_os_str().is_empty()) {
        for candidate in [folder.join(given), folder.join(&file)] {
            if candidate.is_file() {
                return candidate;
            }
        }
    }
    given.to_path_buf()
}

impl Core {
    /// Adds extensions: a path, an [`Extension`], or a list of either. One that is here already is passed over. When one
    /// cannot be loaded, none of the list is added.
    pub fn add_extension(&self, extensions: impl IntoExtensions) -> Result<()> {
        let new = extensions.into_extensions()?;
        for e in &new {
            for m in &e.mappings {
                m.clone().into_rule().map_err(|err| err.at(format!("extension `{}`", e.name)))?;
            }
        }
        let mut state = self.state_mut();
        for e in new {
            let known = state.extensions.iter().any(|old| match (&old.path, &e.path) {
                (Some(a), Some(b)) => a == b,
                (None, None) => old.name == e.name && old.version == e.version && !e.name.is_empty(),
                _ => false,
            });
            if !known {
                state.registry.add_all(e.ops.iter().cloned());
                state.extensions.push(e);
            }
        }
        let kernels = kernels_of(&state.extensions, &state.kernel_listener);
        for device in state.devices.values() {
            device.set_kernels(&kernels);
            device.set_registry(&state.registry);
        }
        Ok(())
    }

    /// What was added, in order.
    pub fn extensions(&self) -> Vec<Extension> {
        self.state().extensions.clone()
    }

    /// Adds the libraries that the environment variable `CARAFE_EXTENSIONS` lists. Gives what could not be loaded.
    pub fn add_environment_extensions(&self) -> Vec<Error> {
        let list = std::env::var_os(ALWAYS).unwrap_or_default();
        let paths = std::env::split_paths(&list).filter(|p| !p.as_os_str().is_empty());
        paths.filter_map(|p| self.add_extension(p).err()).map(|e| e.at(ALWAYS)).collect()
    }

    // Rules of users, and those that follow from operations without one.
    pub(crate) fn user_rules(&self) -> Result<(Vec<Rule>, Vec<Rule>)> {
        let state = self.state();
        let mut rules = Vec::new();
        let mut fallback = Vec::new();
        for e in &state.extensions {
            rules.extend(e.rules.iter().map(|r| r.clone().origin(&e.name)));
            for m in &e.mappings {
                rules.push(m.clone().into_rule()?.origin(&e.name));
            }
            for op in &e.ops {
                let mapping = Mapping::new(format!("{}::{}", op.info.opset, op.info.xml_name));
                fallback.push(mapping.into_rule()?.origin(&e.name));
            }
        }
        for op in &state.loose_ops {
            fallback.push(Mapping::new(format!("{}::{}", op.info.opset, op.info.xml_name)).into_rule()?);
        }
        Ok((rules, fallback))
    }

    pub(crate) fn passes_of(&self, phase: Phase) -> Result<Vec<Arc<dyn Pass>>> {
        let state = self.state();
        let all = state.extensions.iter().flat_map(|e| &e.passes);
        let all: Vec<_> = all.filter(|p| state.choice.runs(p.pass.name(), p.enabled)).cloned().collect();
        order_passes(&all, phase)
    }

    /// Turns rewrites of extensions on and off by name, for all that is read, converted and compiled from now on.
    pub fn choose_passes(&self, choice: PassChoice) {
        self.state_mut().choice = choice;
    }

    /// Rewrites that extensions bring, whether they are on or off.
    pub fn passes(&self) -> Vec<PhasedPass> {
        self.state().extensions.iter().flat_map(|e| e.passes.clone()).collect()
    }

    /// What extensions put in place of parts of a graph.
    pub fn replacements(&self) -> Vec<Arc<dyn Replacement>> {
        self.state().extensions.iter().flat_map(|e| e.replacements.clone()).collect()
    }

    /// Runs the extensions' rewrites of a phase.
    pub fn run_phase(&self, model: &mut Model, phase: Phase, notes: &mut Notes) -> Result<()> {
        let passes = self.passes_of(phase)?;
        if passes.is_empty() {
            return Ok(());
        }
        if notes.registry().is_none() {
            *notes = std::mem::take(notes).with_registry(Arc::new(self.registry()));
        }
        let list: Vec<&dyn Pass> = passes.iter().map(|p| &**p).collect();
        run_passes(model, &list, notes)
    }

    /// Writes into a model which extensions its operations come from. Call it before the model is saved.
    pub fn record_extensions(&self, model: &mut Model) {
        let state = self.state();
        model.rt_info.retain(|t| t.key != NEEDED);
        let mut needed = Vec::new();
        for e in &state.extensions {
            let used = |ty: &str, opset: &str| e.ops.iter().any(|f| f.info.xml_name == ty && f.info.opset == opset);
            if uses(model, &used) {
                let library = e.path.as_ref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy().into_owned());
                let mut children = vec![RtTree::leaf("version", &e.version)];
                children.extend(library.map(|l| RtTree::leaf("library", l)));
                needed.push(RtTree::branch(&e.name, children));
            }
        }
        if !needed.is_empty() {
            model.rt_info.push(RtTree::branch(NEEDED, needed));
        }
    }

    pub(crate) fn telemetry(&self, kind: &str, category: &str, action: &str, label: &str, value: i64) {
        let listeners: Vec<_> = self.state().extensions.iter().flat_map(|e| e.telemetry.clone()).collect();
        for hear in listeners {
            hear(kind, category, action, label, value);
        }
    }
}

fn uses(model: &Model, used: &dyn Fn(&str, &str) -> bool) -> bool {
    model.nodes().any(|(_, n)| {
        used(n.op().type_name(), n.op().opset()) || n.op().bodies().iter().any(|(_, b)| uses(&b.model, used))
    })
}
