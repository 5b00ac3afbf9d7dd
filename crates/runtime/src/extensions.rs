//! Extensions of a `Core`: added by path, in lists or as objects, each once, in any order. What a model needs of them is
//! written into it, so that a reader without it reports what is missing.

use crate::core::Core;
use crate::core::State;
use crate::explain::shown;
use crate::kernels::kernels_of;
use carafe_abi::{ClKernel, Extension, load_extension, load_extension_if_one};
use carafe_frontend::{Mapping, Rule};
use carafe_graph::{
    Error, Model, Notes, OpFactory, Pass, PassChoice, Phase, PhasedPass, Replacement, Result, RtTree, order_passes,
    run_passes,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders in which a library given by its bare name is looked for, before the system's own ones.
const SEARCH_PATH: &str = "CARAFE_EXTENSION_PATH";
/// Libraries that every program loads.
const ALWAYS: &str = "CARAFE_EXTENSIONS";
/// Where a model says which extensions it needs.
const NEEDED: &str = "carafe_extensions";

/// What `Core::add_extension` takes: a path of a library or a folder, an extension, a rule, a mapping, or a list of these.
pub trait IntoExtensions {
    /// The extensions, loaded where they are libraries.
    fn into_extensions(self) -> Result<Vec<Extension>>;
}

impl IntoExtensions for Extension {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Ok(vec![self])
    }
}
/// One rule, with nothing else; it counts as the program's own.
impl IntoExtensions for Rule {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Ok(vec![Extension::default().rule(self)])
    }
}
/// One mapping, with nothing else; it counts as the program's own.
impl IntoExtensions for Mapping {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        Ok(vec![Extension::default().mapping(self)])
    }
}
/// A library, or a folder: then every extension in it, by name.
impl IntoExtensions for &Path {
    fn into_extensions(self) -> Result<Vec<Extension>> {
        let found = find(self);
        if found.is_dir() { in_folder(&found) } else { Ok(vec![load_extension(&found)?]) }
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

// Libraries of others may lie in the folder as well, such as those that extensions need; they are passed over.
fn in_folder(folder: &Path) -> Result<Vec<Extension>> {
    let failed = |e: std::io::Error| Error::io(format!("cannot list `{}`", folder.display()), &e);
    let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    let is_library = |p: &PathBuf| p.to_string_lossy().ends_with(std::env::consts::DLL_SUFFIX) && p.is_file();
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).filter(is_library).collect();
    paths.sort_unstable();
    let mut all = vec![];
    for path in &paths {
        all.extend(load_extension_if_one(path)?);
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err(Error::not_found(format!(
            "folder `{}` has no extension library in it: {} of its files are dynamic libraries (`*{}`), and none of them exports \
             `create_extensions`",
            folder.display(),
            paths.len(),
            std::env::consts::DLL_SUFFIX
        ))),
    }
}

// Whether two extensions of the program are one, given twice. Functions are the same when they lie at the same place.
fn is_same(a: &Extension, b: &Extension) -> bool {
    fn all<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
    }
    a.version == b.version
        && all(&a.ops, &b.ops, |a, b| std::ptr::eq(a.info, b.info))
        && all(&a.rules, &b.rules, |a, b| Arc::ptr_eq(&a.translate, &b.translate))
        && all(&a.mappings, &b.mappings, |a, b| format!("{a:?}") == format!("{b:?}"))
        && all(&a.passes, &b.passes, |a, b| Arc::ptr_eq(&a.pass, &b.pass))
        && all(&a.replacements, &b.replacements, Arc::ptr_eq)
        && all(&a.kernels, &b.kernels, Arc::ptr_eq)
        && a.cl_kernels == b.cl_kernels
        && all(&a.progress, &b.progress, Arc::ptr_eq)
        && all(&a.telemetry, &b.telemetry, Arc::ptr_eq)
}

// Whether an extension is among those before it; one of the program with the name of another is refused.
fn is_known<'e>(e: &Extension, mut others: impl Iterator<Item = &'e Extension>) -> Result<bool> {
    if let Some(path) = &e.path {
        return Ok(others.any(|old| old.path.as_ref() == Some(path)));
    }
    match others.find(|old| old.path.is_none() && old.name == e.name && !e.name.is_empty()) {
        None => Ok(false),
        Some(old) if is_same(old, e) => Ok(true),
        Some(_) => Err(Error::usage(format!(
            "two extensions of the program are named `{}` and bring different things; give each a name of its own",
            e.name
        ))),
    }
}

impl Core {
    /// Adds extensions: a path of a library or of a folder of them, an [`Extension`], a [`Rule`], a [`Mapping`], or a list of
    /// one of these. One that is here already is passed over. When one cannot be loaded, or has the name of another that the
    /// program made, none of the list is added.
    pub fn add_extension(&self, extensions: impl IntoExtensions) -> Result<()> {
        let new = extensions.into_extensions()?;
        for e in &new {
            for m in &e.mappings {
                m.clone().into_rule().map_err(|err| err.at(format!("extension `{}`", e.name)))?;
            }
        }
        let mut warnings = vec![];
        let mut state = self.state_mut();
        let mut declared = vec![];
        for e in &new {
            for kernel in &e.cl_kernels {
                let read = state.devices.get(&kernel.device).and_then(|d| d.read_cl_kernel(kernel));
                match read {
                    Some(Ok(ops)) => declared.extend(ops),
                    // A library may be of use for other devices all the same.
                    Some(Err(why)) if e.path.is_some() => {
                        warnings.push(format!(
                            "{} brings an OpenCL kernel for `{}` that is not used: {why}",
                            shown(e),
                            kernel.device
                        ));
                    }
                    Some(Err(why)) => return Err(why.at(format!("extension `{}`", e.name))),
                    None => {}
                }
            }
        }
        let known = (0..new.len()).map(|i| is_known(&new[i], state.extensions.iter().chain(&new[..i])));
        let known = known.collect::<Result<Vec<_>>>()?;
        for (e, _) in new.into_iter().zip(known).filter(|(_, known)| !known) {
            warnings.extend(state.shadowed_by(&e));
            warnings.extend(state.unused_cl_kernels(&e));
            state.registry.add_all(e.ops.iter().cloned());
            state.extensions.push(e);
        }
        state.declare(declared);
        for (name, device) in &state.devices {
            device.set_kernels(&kernels_of(&state.extensions, name, &state.reporter));
            device.set_cl_kernels(&cl_kernels_of(&state.extensions, name));
            device.set_registry(&state.registry);
        }
        drop(state);
        warnings.iter().for_each(|text| self.warn(text));
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
            let of = |rule: Rule| if e.name.is_empty() { rule } else { rule.origin(&e.name) };
            rules.extend(e.rules.iter().map(|r| of(r.clone())));
            for m in &e.mappings {
                rules.push(of(m.clone().into_rule()?));
            }
            for op in &e.ops {
                let mapping = Mapping::new(format!("{}::{}", op.info.opset, op.info.xml_name));
                fallback.push(of(mapping.into_rule()?));
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

    /// What extensions put in place of parts of a graph, and what is built in and no extension has.
    pub fn replacements(&self) -> Vec<Arc<dyn Replacement>> {
        let state = self.state();
        let mut all: Vec<_> = state.extensions.iter().flat_map(|e| e.replacements.clone()).collect();
        let built_in = state.replacements.iter().filter(|b| !all.iter().any(|r| r.id() == b.id()));
        let built_in: Vec<_> = built_in.cloned().collect();
        all.extend(built_in);
        all
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
        for e in state.extensions.iter().filter(|e| !e.name.is_empty()) {
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

/// OpenCL kernels that extensions bring for a device, in the order in which they were added.
pub(crate) fn cl_kernels_of(extensions: &[Extension], device: &str) -> Vec<ClKernel> {
    extensions.iter().flat_map(|e| &e.cl_kernels).filter(|k| k.device == device).cloned().collect()
}

impl State {
    /// Registers operations that kernel files declare.
    pub(crate) fn declare(&mut self, ops: Vec<OpFactory>) {
        for op in ops {
            if !self.loose_ops.iter().any(|old| std::ptr::eq(old.info, op.info)) {
                self.loose_ops.push(op.clone());
            }
            self.registry.add(op);
        }
    }

    // Operations that another extension has as well, in words; that of the latest is used.
    fn shadowed_by(&self, new: &Extension) -> Vec<String> {
        let is_one = |a: &OpFactory, b: &OpFactory| a.info.xml_name == b.info.xml_name && a.info.opset == b.info.opset;
        let mut told = vec![];
        for op in &new.ops {
            let old = self.extensions.iter().rev().find(|e| e.ops.iter().any(|o| is_one(o, op)));
            if let Some(old) = old {
                told.push(format!(
                    "operation `{}::{}` is in {} and in {}; that of the latter is used, because it was added later",
                    op.info.opset,
                    op.info.xml_name,
                    shown(old),
                    shown(new)
                ));
            }
        }
        told
    }
}

impl State {
    // OpenCL kernels for devices that take none, in words.
    fn unused_cl_kernels(&self, new: &Extension) -> Vec<String> {
        let takes = |k: &&ClKernel| self.devices.get(&k.device).is_some_and(|d| d.read_cl_kernel(k).is_some());
        let unused: Vec<&ClKernel> = new.cl_kernels.iter().filter(|k| !takes(k)).collect();
        unused_in_words(new, &unused)
    }
}

fn unused_in_words(new: &Extension, unused: &[&ClKernel]) -> Vec<String> {
    let devices: BTreeSet<&str> = unused.iter().map(|k| k.device.as_str()).collect();
    let told = devices.into_iter().map(|device| {
        let n = unused.iter().filter(|k| k.device == device).count();
        let (kernels, them) =
            if n == 1 { ("an OpenCL kernel".to_string(), "it") } else { (format!("{n} OpenCL kernels"), "them") };
        format!("{} brings {kernels} for `{device}`; no device takes {them}, so nothing runs {them}", shown(new))
    });
    told.collect()
}

fn uses(model: &Model, used: &dyn Fn(&str, &str) -> bool) -> bool {
    model.nodes().any(|(_, n)| {
        used(n.op().type_name(), n.op().opset()) || n.op().bodies().iter().any(|(_, b)| uses(&b.model, used))
    })
}
