//! The entry to everything. Cheap to clone; clones share registrations.

use crate::device_name::DeviceName;
use crate::reader::{ReadRequest, Reader};
use carafe_device::{CompiledModel, Device, Devices, Mutability, Properties, Query};
use carafe_graph::{Error, Model, OpFactory, Registry, Result};
use carafe_tensor::SharedBytes;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// Bytes at the start of a file that readers judge by.
const HEAD_BYTES: u64 = 64 * 1024;

/// The property that holds the list of `HETERO:A,B` and its kin.
const PRIORITIES: &str = "MULTI_DEVICE_PRIORITIES";

#[derive(Clone, Default)]
pub struct Core {
    state: Arc<RwLock<State>>,
}

#[derive(Default)]
struct State {
    registry: Registry,
    readers: Vec<Arc<dyn Reader>>,
    devices: BTreeMap<String, Arc<dyn Device>>,
    properties: BTreeMap<String, Properties>,
}

impl Core {
    /// Without any operation, format or device; `carafe::core()` gives one with all that is built in.
    pub fn empty() -> Core {
        Core::default()
    }

    // A panic while the lock is held leaves only finished registrations behind, so a poisoned lock is still good.
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(|e| e.into_inner())
    }
    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(|e| e.into_inner())
    }

    /// Registers operations in front of those of the same name.
    pub fn add_ops(&self, ops: impl IntoIterator<Item = OpFactory>) {
        self.state_mut().registry.add_all(ops);
    }
    pub fn add_reader(&self, reader: Arc<dyn Reader>) {
        self.state_mut().readers.push(reader);
    }
    pub fn add_device(&self, name: &str, device: Arc<dyn Device>) -> Result<()> {
        let parsed = DeviceName::parse(name)?;
        if parsed.instance.is_some() || parsed.priorities.is_some() {
            return Err(Error::usage(format!("device name `{name}` must not contain a dot or a colon")));
        }
        let mut state = self.state_mut();
        if state.devices.contains_key(name) {
            return Err(Error::usage(format!("device `{name}` is registered already")));
        }
        state.devices.insert(name.to_string(), device);
        Ok(())
    }
    /// A copy of all registered operations.
    pub fn registry(&self) -> Registry {
        self.state().registry.clone()
    }

    /// Reads a model of any registered format, told by its content.
    pub fn read_model(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.read(&ReadRequest::new(path.as_ref()))
    }

    pub fn read(&self, request: &ReadRequest<'_>) -> Result<Model> {
        let shown = request.path.display();
        let reader = self.reader_of(request.path)?;
        reader.read(request, &self.registry()).map_err(|e| e.at(format!("model `{shown}`")))
    }

    /// Name of the format of a file, told by its content.
    pub fn format_of(&self, path: impl AsRef<Path>) -> Result<&'static str> {
        Ok(self.reader_of(path.as_ref())?.format())
    }

    fn reader_of(&self, path: &Path) -> Result<Arc<dyn Reader>> {
        let shown = path.display();
        let file = std::fs::File::open(path).map_err(|e| Error::io(format!("cannot open `{shown}`"), &e))?;
        let mut head = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut head).map_err(|e| Error::io(format!("cannot read `{shown}`"), &e))?;
        let state = self.state();
        state.readers.iter().find(|r| r.recognizes(&head)).cloned().ok_or_else(|| {
            let known: Vec<&str> = state.readers.iter().map(|r| r.format()).collect();
            Error::unsupported(format!("`{shown}` is of no known format; known: {}", known.join(", ")))
        })
    }

    pub fn compile_model(
        &self,
        model: &Model,
        device: &str,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        let (found, all) = self.resolve(device, properties)?;
        found.compile(model, &all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// Loads what `CompiledModel::export` wrote.
    pub fn import_model(
        &self,
        blob: SharedBytes,
        device: &str,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        let (found, all) = self.resolve(device, properties)?;
        found.import(blob, &self.registry(), &all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// Which nodes of the model the device can run.
    pub fn query_model(&self, model: &Model, device: &str, properties: &Properties) -> Result<Query> {
        let (found, all) = self.resolve(device, properties)?;
        found.query(model, &all).map_err(|e| e.at(format!("device `{device}`")))
    }

    /// Devices that are here, with their instances where there are several.
    pub fn available_devices(&self) -> Vec<String> {
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

    /// A device by name, for tools that print its property table.
    pub fn device(&self, name: &str) -> Result<Arc<dyn Device>> {
        Ok(self.resolve(name, &Properties::new())?.0)
    }

    /// Sets defaults for later compilations on the device.
    pub fn set_property(&self, device: &str, properties: &Properties) -> Result<()> {
        let (found, _) = self.resolve(device, &Properties::new())?;
        properties.check(found.properties()).map_err(|e| e.at(format!("device `{device}`")))?;
        let name = DeviceName::parse(device)?.device;
        let mut state = self.state_mut();
        let old = state.properties.entry(name).or_default();
        *old = old.overlaid(properties);
        Ok(())
    }

    /// A property of a device: what was set, its default, or what the device tells.
    pub fn get_property(&self, device: &str, name: &str) -> Result<String> {
        let (found, all) = self.resolve(device, &Properties::new())?;
        let info = found.properties().iter().find(|p| p.name == name);
        match info {
            Some(p) if p.mutability == Mutability::ReadWrite => Ok(all.get(name).unwrap_or(p.default).to_string()),
            _ => found.metric(name),
        }
    }

    // The device, and the properties in force: defaults set on Core, then those of the call.
    fn resolve(&self, name: &str, over: &Properties) -> Result<(Arc<dyn Device>, Properties)> {
        let parsed = DeviceName::parse(name)?;
        let state = self.state();
        let Some(device) = state.devices.get(&parsed.device).cloned() else {
            let known: Vec<&str> = state.devices.keys().map(String::as_str).collect();
            return Err(Error::not_found(format!(
                "device `{}` is not registered; registered: {}",
                parsed.device,
                known.join(", ")
            )));
        };
        let mut all = state.properties.get(&parsed.device).cloned().unwrap_or_default().overlaid(over);
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
            let ids = device.metric("AVAILABLE_DEVICES").unwrap_or_default();
            if !ids.split_whitespace().any(|i| i == id) {
                return Err(Error::not_found(format!("device `{}` has no instance {id}; it has {ids}", parsed.device)));
            }
            all.set("DEVICE_ID", id);
        }
        Ok((device, all))
    }
}

/// A `Core` that does not keep itself alive, for devices made of devices, which `Core` itself holds.
#[derive(Clone)]
pub struct WeakCore(Weak<RwLock<State>>);

impl Core {
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
