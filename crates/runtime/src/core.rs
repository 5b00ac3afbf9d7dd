//! The entry to everything. Cheap to clone; clones share registrations.

use crate::cache;
use crate::compiled::CompiledModel;
use crate::device_name::DeviceName;
use crate::extensions::cl_kernels_of;
use crate::kernels::kernels_of;
use crate::log::Reporter;
use crate::model_source::ModelSource;
use crate::plugins::PluginEntry;
use carafe_abi::Extension;
use carafe_device::{Device, Devices, Mutability, Properties, Query, RemoteContext, Shared};
use carafe_frontend::{Content, Format, Log, Progress, ReadRequest};
use carafe_graph::log::Level;
use carafe_graph::{Error, Model, Notes, OpFactory, PassChoice, Phase, Registry, Replacement, Result};
use carafe_tensor::SharedBytes;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// Bytes at the start of a file that formats judge by.
const HEAD_BYTES: usize = 64 * 1024;

/// The property that holds the list of `HETERO:A,B` and its kin.
const PRIORITIES: &str = "MULTI_DEVICE_PRIORITIES";

/// Reads models, makes them ready for devices, and holds what is registered: formats, operations, devices, extensions,
/// properties. Cheap to clone; clones share all of it.
#[derive(Clone, Default)]
pub struct Core {
    state: Arc<RwLock<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    /// Operations that came without an extension.
    pub(crate) loose_ops: Vec<OpFactory>,
    pub(crate) extensions: Vec<Extension>,
    /// Rewrites of extensions that the user turned on and off.
    pub(crate) choice: PassChoice,
    formats: Vec<Arc<dyn Format>>,
    /// Replacements that came without an extension.
    pub(crate) replacements: Vec<Arc<dyn Replacement>>,
    pub(crate) devices: BTreeMap<String, Arc<dyn Device>>,
    /// Other names of devices.
    aliases: BTreeMap<String, String>,
    pub(crate) plugins: BTreeMap<String, PluginEntry>,
    properties: BTreeMap<String, Properties>,
    /// Properties of the cache by device; those under the empty name hold for all.
    cache: BTreeMap<String, Properties>,
    pub(crate) reporter: Arc<Reporter>,
}

impl Core {
    /// Without any operation, format or device; `carafe::core()` gives one with all that is built in.
    pub fn empty() -> Core {
        Core::default()
    }

    // A panic while the lock is held leaves only finished registrations behind, so a poisoned lock is still good.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|e| e.into_inner())
    }
    pub(crate) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(|e| e.into_inner())
    }

    /// Registers operations in front of those of the same name.
    pub fn add_ops(&self, ops: impl IntoIterator<Item = OpFactory>) {
        let ops: Vec<OpFactory> = ops.into_iter().collect();
        let mut state = self.state_mut();
        state.loose_ops.extend(ops.iter().filter(|f| !f.info.builtin).cloned());
        state.registry.add_all(ops);
        state.devices.values().for_each(|d| d.set_registry(&state.registry));
    }
    /// Registers a file format behind those that are there.
    pub fn add_format(&self, format: Arc<dyn Format>) {
        self.state_mut().formats.push(format);
    }
    /// The file formats that models are read of, in the order in which they are asked.
    pub fn formats(&self) -> Vec<Arc<dyn Format>> {
        self.state().formats.clone()
    }
    /// Registers what replacement files may name by id; that of an extension of the same id stands in front.
    pub fn add_replacements(&self, replacements: impl IntoIterator<Item = Arc<dyn Replacement>>) {
        self.state_mut().replacements.extend(replacements);
    }
    /// Registers a device under a name without dot or colon that is not taken.
    pub fn add_device(&self, name: &str, device: Arc<dyn Device>) -> Result<()> {
        let parsed = DeviceName::parse(name)?;
        if parsed.instance.is_some() || parsed.priorities.is_some() {
            return Err(Error::usage(format!("device name `{name}` must not contain a dot or a colon")));
        }
        let mut state = self.state_mut();
        if state.devices.contains_key(name) {
            return Err(Error::usage(format!("device `{name}` is registered already")));
        }
        device.set_kernels(&kernels_of(&state.extensions, name, &state.reporter));
        device.set_cl_kernels(&cl_kernels_of(&state.extensions, name));
        device.set_registry(&state.registry);
        state.devices.insert(name.to_string(), device);
        Ok(())
    }
    /// Lets a device be called by another name too, unless a device has that name.
    pub fn add_alias(&self, alias: &str, name: &str) {
        self.state_mut().aliases.insert(alias.to_string(), name.to_string());
    }
    // A device name taken apart, under the name that the device is registered by.
    fn named(&self, name: &str) -> Result<DeviceName> {
        let mut parsed = DeviceName::parse(name)?;
        let state = self.state();
        let taken = state.devices.contains_key(&parsed.device) || state.plugins.contains_key(&parsed.device);
        if let Some(own) = state.aliases.get(&parsed.device).filter(|_| !taken) {
            parsed.device = own.clone();
        }
        Ok(parsed)
    }
    /// A copy of all registered operations.
    pub fn registry(&self) -> Registry {
        self.state().registry.clone()
    }

    /// Reads a model of any registered format, detected from its content.
    pub fn read_model(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.read(&ReadRequest::new(path.as_ref()))
    }

    /// Reads a model out of memory: the bytes of a file of any format, and its weights where the format keeps them apart.
    ///
    /// ```
    /// # use carafe_graph::Result;
    /// # fn read(core: &carafe_runtime::Core, xml: &str, bin: Vec<u8>, onnx: Vec<u8>) -> Result<()> {
    /// let from_ir = core.read_model_from(xml, Some(bin.into()))?;
    /// let from_onnx = core.read_model_from(onnx, None)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_model_from(&self, model: impl Into<SharedBytes>, weights: Option<SharedBytes>) -> Result<Model> {
        let model = model.into();
        let weights = weights.as_ref().map(Content::Bytes);
        self.read(&ReadRequest { weights, ..ReadRequest::from_bytes(&model) })
    }

    /// As [`Core::read_model`], with everything that a request can say.
    pub fn read(&self, request: &ReadRequest<'_>) -> Result<Model> {
        let read = || {
            let format = self.find_format(request.model)?;
            let registry = Arc::new(self.registry());
            let (rules, fallback) = self.user_rules()?;
            let decoded = self.passes_of(Phase::Decoded)?;
            let telemetry = |k: &str, c: &str, a: &str, l: &str, v: i64| self.telemetry(k, c, a, l, v);
            let extensions: Vec<String> = self.state().extensions.iter().map(|e| e.name.clone()).collect();
            let listeners: Vec<_> = self.state().extensions.iter().flat_map(|e| e.progress.clone()).collect();
            let told = |done: usize, total: usize, what: &str| {
                request.progress.tell(done, total, what);
                for hear in &listeners {
                    hear(done as f32 / total.max(1) as f32, total as u32, done as u32);
                }
            };
            let reporter = self.state().reporter.clone();
            let hear = |level: Level, text: &str| reporter.report(level, text);
            let log = request.log.or(Log::to(&hear, reporter.wants(Level::Debug)));
            let request = ReadRequest {
                progress: Progress::to(&told),
                log,
                extensions: &extensions,
                registry: Some(&registry),
                rules: &rules,
                fallback: &fallback,
                decoded: &decoded,
                telemetry: Some(&telemetry),
                ..*request
            };
            let mut model = carafe_frontend::read(&*format, &request)?;
            request.log.debug(|| "stage front".to_string());
            let mut notes = Notes::default().kept(request.log.is_debug()).with_registry(registry.clone());
            let done = self.run_phase(&mut model, Phase::Front, &mut notes);
            notes.lines.iter().for_each(|line| request.log.debug(|| line.clone()));
            done.map(|()| model)
        };
        read().map_err(|e: Error| e.at(format!("model {}", request.model)))
    }

    /// The graph of a file as it was decoded, before anything is translated; `None` when its format has no such form.
    pub fn read_decoded(&self, request: &ReadRequest<'_>) -> Result<Option<Model>> {
        let read = || carafe_frontend::read_decoded(&*self.find_format(request.model)?, request);
        read().map_err(|e: Error| e.at(format!("model {}", request.model)))
    }

    /// Name of the format of a file, detected from its content.
    pub fn format_of(&self, path: impl AsRef<Path>) -> Result<&'static str> {
        let model = Content::File(path.as_ref());
        Ok(self.find_format(model).map_err(|e| e.at(format!("model {model}")))?.name())
    }

    // Callers name the model in an error.
    fn find_format(&self, model: Content<'_>) -> Result<Arc<dyn Format>> {
        if let Some(folder) = model.path().filter(|p| p.is_dir()) {
            let found = self.state().formats.iter().find(|f| f.recognizes_folder(folder)).cloned();
            return found.ok_or_else(|| {
                Error::unsupported(
                    "the folder holds no model; one of TensorFlow holds `saved_model.pb`, one of Paddle `__model__`",
                )
                .with_code(15)
            });
        }
        let head = model.head(HEAD_BYTES).map_err(|e| with_neighbours(e, model.path()))?;
        let state = self.state();
        // What is too broken to be recognised is reported best by the format that its name says.
        let ending = model.path().and_then(Path::extension).map(|e| e.to_string_lossy().to_ascii_lowercase());
        let by_name = |f: &&Arc<dyn Format>| ending.as_deref().is_some_and(|e| f.endings().contains(&e));
        let by_content = state.formats.iter().find(|f| f.recognizes(&head));
        by_content.or_else(|| state.formats.iter().find(by_name)).cloned().ok_or_else(|| {
            let known: Vec<&str> = state.formats.iter().map(|f| f.name()).collect();
            let what = if model.path().is_some() { "the file is" } else { "the bytes are" };
            Error::unsupported(format!("{what} of no known format; known: {}", known.join(", "))).with_code(15)
        })
    }

    /// Makes a model, or that of a file, ready for a device: `CPU`, `GPU.1`, `HETERO:GPU,CPU`, `AUTO`. Properties of the call
    /// stand before those of [`Core::set_property`]. The model is not changed.
    pub fn compile_model(
        &self,
        model: impl ModelSource,
        device: &str,
        properties: &Properties,
    ) -> Result<CompiledModel> {
        let (found, all) = self.resolve(device, properties)?;
        // Before the model is read, whose operations they may be.
        self.declare(&*found, &all).map_err(|e| e.at(format!("device `{device}`")))?;
        let model = &*model.model(self)?;
        let cache = self.cache_in_force(device, properties)?;
        let rewritten = self.as_compiled(model)?;
        let job = cache::Job {
            model: rewritten.as_ref().unwrap_or(model),
            name: &self.named(device)?.device,
            device: &*found,
            properties: &all,
            registry: &|| self.registry(),
            others: &self.what_else_decides(&*found, &all),
            warn: &|text| self.warn(text),
        };
        let (compiled, from_cache) = job.run(&cache).map_err(|e| e.at(format!("device `{device}`")))?;
        Ok(CompiledModel::new(compiled, from_cache, cache.get(cache::DIR).unwrap_or_default()))
    }

    /// The model that [`Core::compile_model`] gives to a device: with the newest versions of operations, after the rewrites
    /// that extensions bring. `None` where that is the model itself.
    pub fn as_compiled(&self, model: &Model) -> Result<Option<Model>> {
        let newest = carafe_graph::upgraded(model)?;
        let rewritten = self.rewritten(newest.as_ref().unwrap_or(model))?;
        Ok(rewritten.or(newest))
    }

    /// The memory that models compiled for a device work in, for tensors that lie there from one inference to the next. A device
    /// that has none of its own says so.
    pub fn create_context(&self, device: &str, properties: &Properties) -> Result<Arc<dyn RemoteContext>> {
        let (found, all) = self.resolve(device, properties)?;
        found.context(&all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// The same over a context of the device's library that other code made; compile for it with
    /// [`Core::compile_model_in`]. GPU takes an `opencl::Context`.
    pub fn share_context(&self, device: &str, context: Shared) -> Result<Arc<dyn RemoteContext>> {
        let (found, all) = self.resolve(device, &Properties::new())?;
        found.share_context(context, &all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// Makes a model ready for the memory of a context.
    pub fn compile_model_in(
        &self,
        model: impl ModelSource,
        context: &dyn RemoteContext,
        properties: &Properties,
    ) -> Result<CompiledModel> {
        let name = context.device();
        let device = name.split('.').next().unwrap_or_default();
        self.compile_model(model, device, &properties.overlaid(&context.properties()))
    }

    // The model after the extensions' rewrites; `None` when there are none.
    fn rewritten(&self, model: &Model) -> Result<Option<Model>> {
        if self.passes_of(Phase::Middle)?.is_empty() && self.passes_of(Phase::Back)?.is_empty() {
            return Ok(None);
        }
        let (mut model, mut notes) = (model.clone(), Notes::default());
        self.run_phase(&mut model, Phase::Middle, &mut notes)?;
        self.run_phase(&mut model, Phase::Back, &mut notes)?;
        Ok(Some(model))
    }

    /// Loads what [`CompiledModel::export`] wrote.
    pub fn import_model(&self, blob: SharedBytes, device: &str, properties: &Properties) -> Result<CompiledModel> {
        let (found, all) = self.resolve(device, properties)?;
        let compiled = found.import(blob, &self.registry(), &all).map_err(|e| e.at(format!("device `{device}`")))?;
        Ok(CompiledModel::new(compiled, false, ""))
    }

    /// Which nodes of the model the device can run. [`Core::as_compiled`] is the model that it would be given.
    pub fn query_model(&self, model: &Model, device: &str, properties: &Properties) -> Result<Query> {
        let (found, all) = self.resolve(device, properties)?;
        let newest = carafe_graph::upgraded(model)?;
        found.query(newest.as_ref().unwrap_or(model), &all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// Devices that are here, with their instances where there are several.
    pub fn available_devices(&self) -> Vec<String> {
        // A plugin that cannot be opened is not available; `broken_plugins` tells why.
        let _ = self.broken_plugins();
        let state = self.state();
        let mut names = Vec::new();
        for (name, device) in &state.devices {
            let ids = device.metric("AVAILABLE_DEVICES").unwrap_or_default();
            match ids.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] => {}
                [_] => names.push(name.clone()),
                many => names.extend(many.iter().map(|id| format!("{name}.{id}"))),
            }
        }
        names
    }

    /// Plugins that are registered and cannot be opened, each with what is wrong.
    pub fn broken_plugins(&self) -> Vec<(String, Error)> {
        let names = self.plugin_names().into_iter();
        names.filter_map(|name| self.open_plugin(&name).err().map(|e| (name, e))).collect()
    }

    /// Devices that are registered and have no instance here, each with the reason.
    pub fn missing_devices(&self) -> Vec<(String, String)> {
        let state = self.state();
        // Those that are made of others have none of their own.
        let composed = |device: &Arc<dyn Device>| device.properties().iter().any(|p| p.name == PRIORITIES);
        let reason = |device: &Arc<dyn Device>| match device.metric("AVAILABLE_DEVICES") {
            _ if composed(device) => None,
            Ok(ids) if ids.trim().is_empty() => Some("it has no instance".to_string()),
            Ok(_) => None,
            Err(e) => Some(e.to_string()),
        };
        state.devices.iter().filter_map(|(name, device)| Some((name.clone(), reason(device)?))).collect()
    }

    /// A device by name, for tools that print its property table.
    pub fn device(&self, name: &str) -> Result<Arc<dyn Device>> {
        Ok(self.resolve(name, &Properties::new())?.0)
    }

    /// Sets defaults for later compilations on the device. Those of the cache may also be set under an empty name, for all
    /// devices.
    pub fn set_property(&self, device: &str, properties: &Properties) -> Result<()> {
        let (cache, properties) = &cache::split(properties);
        cache::check(cache)?;
        let name = if device.is_empty() {
            properties.check(cache::CACHE_PROPERTIES)?;
            String::new()
        } else {
            let (found, _) = self.resolve(device, &Properties::new())?;
            let at = |e: Error| e.at(format!("device `{device}`"));
            properties.check(found.properties()).map_err(at)?;
            self.declare(&*found, properties).map_err(at)?;
            self.named(device)?.device
        };
        let mut state = self.state_mut();
        let old = state.cache.entry(name.clone()).or_default();
        *old = old.overlaid(cache);
        let old = state.properties.entry(name).or_default();
        *old = old.overlaid(properties);
        Ok(())
    }

    // Registers the operations that properties declare.
    fn declare(&self, device: &dyn Device, properties: &Properties) -> Result<()> {
        let ops = device.declared_ops(properties)?;
        if !ops.is_empty() {
            let mut state = self.state_mut();
            state.declare(ops);
            state.devices.values().for_each(|d| d.set_registry(&state.registry));
        }
        Ok(())
    }

    /// A property of a device: what was set, its default, or what the device tells.
    pub fn get_property(&self, device: &str, name: &str) -> Result<String> {
        if let Some(info) = cache::CACHE_PROPERTIES.iter().find(|p| p.name == name) {
            return Ok(self.cache_in_force(device, &Properties::new())?.get(name).unwrap_or(info.default).to_string());
        }
        let (found, all) = self.resolve(device, &Properties::new())?;
        let info = found.properties().iter().find(|p| p.name == name);
        match info {
            Some(p) if p.mutability == Mutability::ReadWrite => Ok(all.get(name).unwrap_or(p.default).to_string()),
            _ => found.metric(name),
        }
    }

    /// Sets who hears what this Core and its clones notice, up to `most`: warnings of reading, of the cache, of kernels, and
    /// for [`Level::Debug`] every node as it is translated. Without it the hook of the process hears
    /// ([`log::set_hook`](carafe_graph::log::set_hook)). Warnings from before come at once.
    pub fn set_log_hook(&self, most: Level, hook: impl Fn(Level, &str) + Send + Sync + 'static) {
        let reporter = self.state().reporter.clone();
        reporter.set_hook(most, Arc::new(hook));
    }

    /// Reports a warning to whoever listens to this Core.
    pub fn warn(&self, text: &str) {
        let reporter = self.state().reporter.clone();
        reporter.report(Level::Warning, text);
    }

    // The cache's properties: those for all, then those of the device, then those of the call.
    fn cache_in_force(&self, device: &str, over: &Properties) -> Result<Properties> {
        let name = if device.is_empty() { String::new() } else { self.named(device)?.device };
        let state = self.state();
        let set = |name: &str| state.cache.get(name).cloned().unwrap_or_default();
        Ok(set("").overlaid(&set(&name)).overlaid(&cache::split(over).0))
    }

    // What decides over a compilation beside model, device and properties.
    fn what_else_decides(&self, device: &dyn Device, in_force: &Properties) -> Vec<String> {
        let (devices, properties, mut all) = {
            let state = self.state();
            let linked = |e: &Extension| e.path.is_none();
            let mut all: Vec<String> = state.extensions.iter().map(|e| format!("{} {}", e.name, e.version)).collect();
            all.extend(state.extensions.iter().filter_map(|e| e.path.as_deref()).map(cache::file_stamp));
            // What is linked into the program changes when the program does.
            if !state.loose_ops.is_empty() || state.extensions.iter().any(linked) {
                all.extend(std::env::current_exe().map(|path| cache::file_stamp(&path)));
            }
            (state.devices.clone(), state.properties.clone(), all)
        };
        all.push(device.fingerprint(in_force));
        // A device made of devices depends on all that it may choose.
        if device.properties().iter().any(|p| p.name == PRIORITIES) {
            all.extend(devices.iter().map(|(name, d)| format!("{name} {:?}", d.version())));
            all.extend(properties.iter().map(|(name, p)| format!("{name} {p:?}")));
            let set = |name: &str| properties.get(name).cloned().unwrap_or_default();
            all.extend(devices.iter().map(|(name, d)| d.fingerprint(&set(name))));
        }
        all
    }

    // The device, and the properties in force: defaults set on Core, then those of the call.
    fn resolve(&self, name: &str, over: &Properties) -> Result<(Arc<dyn Device>, Properties)> {
        let cache = self.cache_in_force(name, over)?;
        let (_, over) = &cache::split(over);
        let parsed = self.named(name)?;
        self.open_plugin(&parsed.device)?;
        let state = self.state();
        let Some(device) = state.devices.get(&parsed.device).cloned() else {
            let mut known: Vec<&str> = state.devices.keys().chain(state.plugins.keys()).map(String::as_str).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Error::not_found(format!(
                "device `{}` is not registered; registered: {}",
                parsed.device,
                known.join(", ")
            )));
        };
        let mut all = state.properties.get(&parsed.device).cloned().unwrap_or_default().overlaid(over);
        cache::place_kernels(&*device, &cache, &mut all);
        if let Some(list) = parsed.priorities {
            if !device.properties().iter().any(|p| p.name == PRIORITIES) {
                return Err(Error::usage(format!("device `{}` is not made of other devices", parsed.device)));
            }
            if let Some(other) = over.get(PRIORITIES).filter(|other| **other != list) {
                return Err(Error::usage(format!("`{name}` and {PRIORITIES}={other} name different devices")));
            }
            all.set(PRIORITIES, list);
        }
        if let Some(id) = parsed.instance {
            let ids = device.metric("AVAILABLE_DEVICES")?;
            if !ids.split_whitespace().any(|i| i == id) {
                return Err(Error::not_found(format!("device `{}` has no instance {id}; it has {ids}", parsed.device)));
            }
            all.set("DEVICE_ID", id);
        }
        Ok((device, all))
    }
}

// What a file that cannot be opened may have been meant to be: the files that begin with its name, as those of a checkpoint
// begin with its prefix.
fn with_neighbours(e: Error, path: Option<&Path>) -> Error {
    let Some((path, name)) = path.filter(|p| !p.exists()).and_then(|p| Some((p, p.file_name()?.to_string_lossy())))
    else {
        return e;
    };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.map(|f| f.file_name().to_string_lossy().into_owned());
    let mut beside: Vec<String> =
        names.filter(|n| n.starts_with(&format!("{name}."))).map(|n| format!("`{n}`")).collect();
    beside.sort();
    match beside.is_empty() {
        true => e,
        false => Error::new(e.kind(), format!("{e}; beside it lie {}", beside[..beside.len().min(4)].join(", "))),
    }
}

/// A `Core` that does not keep itself alive, for devices made of devices, which `Core` itself holds.
#[derive(Clone)]
pub struct WeakCore(Weak<RwLock<State>>);

impl Core {
    /// A handle that does not keep the Core alive.
    pub fn downgrade(&self) -> WeakCore {
        WeakCore(Arc::downgrade(&self.state))
    }
}

impl WeakCore {
    fn core(&self) -> Result<Core> {
        let state = self.0.upgrade().ok_or_else(|| Error::usage("the Core of this device is gone"))?;
        Ok(Core { state })
    }
}

impl Devices for WeakCore {
    fn device(&self, name: &str, properties: &Properties) -> Result<(Arc<dyn Device>, Properties)> {
        self.core()?.resolve(name, properties)
    }
    fn available(&self) -> Vec<String> {
        let Ok(core) = self.core() else { return vec![] };
        let made_of_others = |name: &str| {
            let device = name.split('.').next().unwrap_or(name);
            core.state().devices.get(device).is_some_and(|d| d.properties().iter().any(|p| p.name == PRIORITIES))
        };
        core.available_devices().into_iter().filter(|n| !made_of_others(n)).collect()
    }
    fn registry(&self) -> Registry {
        self.core().map(|c| c.registry()).unwrap_or_default()
    }
}

impl std::fmt::Debug for WeakCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WeakCore")
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core({:?})", self.available_devices())
    }
}
