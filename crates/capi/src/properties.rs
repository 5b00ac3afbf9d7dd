//! Properties as C gives them: pairs of texts, but for a few keys whose value is a pointer. Where the original has a property
//! that means nothing to this engine and that programs set all the same, its value is checked and kept, so that it reads back.

use crate::core::CoreObject;
use crate::pointers::{List, Text};
use crate::status::{Failure, GENERAL_ERROR, NOT_IMPLEMENTED, Outcome};
use crate::variadic::Words;
use carafe::{Properties, PropertyInfo, PropertyKind};
use std::collections::BTreeMap;
use std::ffi::c_void;

/// `ov_property_t`: promised never to grow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Property {
    key: Text,
    value: *const c_void,
}

/// The key whose value is `ov_encryption_callbacks*`.
pub(crate) const ENCRYPTION: &str = "CACHE_ENCRYPTION_CALLBACKS";

/// Keys whose value is a handle of OpenCL or VA.
const HANDLES: [&str; 5] = ["OCL_CONTEXT", "OCL_QUEUE", "VA_DEVICE", "MEM_HANDLE", "DEV_OBJECT_HANDLE"];

/// Those of them that contexts and their tensors take.
const TAKEN_HANDLES: [&str; 3] = ["OCL_CONTEXT", "OCL_QUEUE", "MEM_HANDLE"];

/// Pairs of a call, after their values were looked at.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) texts: Properties,
    /// Whether functions for encryption came with them.
    pub(crate) encrypts: bool,
    /// Addresses of objects that the program shares.
    pub(crate) handles: BTreeMap<String, usize>,
}

impl Given {
    fn add(&mut self, key: Text, value: *const c_void) -> Outcome<()> {
        let key = key.get("property key")?;
        if value.is_null() {
            return Err(Failure::argument(format!("the value of property {key} is null")));
        }
        if TAKEN_HANDLES.contains(&key) {
            self.handles.insert(key.to_string(), value.expose_provenance());
            return Ok(());
        }
        if HANDLES.contains(&key) {
            let text = format!("property {key} shares an object of VA, which no device here takes");
            return Err(Failure::new(NOT_IMPLEMENTED, text));
        }
        if key == ENCRYPTION {
            self.encrypts = true;
        } else {
            self.texts.set(key, Text::of_word(value).get("property value")?);
        }
        Ok(())
    }

    /// Fails where an object is shared with a call that has no use for it.
    pub(crate) fn without_handles(&self) -> Outcome<()> {
        match self.handles.keys().next() {
            None => Ok(()),
            Some(key) => Err(Failure::argument(format!("property {key} belongs to a context and its tensors"))),
        }
    }

    /// Of an array of pairs.
    pub(crate) fn of_list(list: List<Property>, len: usize) -> Outcome<Given> {
        let mut given = Given::default();
        list.get(len, "properties")?.iter().try_for_each(|p| given.add(p.key, p.value))?;
        Ok(given)
    }

    /// Of variable arguments, `count` of them: two for each pair.
    pub(crate) fn of_words(words: &mut Words, count: usize) -> Outcome<Given> {
        if !count.is_multiple_of(2) {
            return Err(Failure::argument(format!(
                "properties are pairs of a key and a value, found {count} arguments"
            )));
        }
        let mut given = Given::default();
        for _ in 0..count / 2 {
            let (key, value) = (words.pointer(), words.pointer());
            given.add(Text::of_word(key), value)?;
        }
        Ok(given)
    }
}

/// Whom a property without effect is for.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// No device at all.
    Core,
    /// Every device that does not know it.
    Device,
    Auto,
}

/// Properties of the original without effect here: scope, name, kind, default.
const INERT: &[(Scope, &str, PropertyKind, &str)] = &[
    (Scope::Core, "FORCE_TBB_TERMINATE", PropertyKind::Bool, "NO"),
    (Scope::Core, "ENABLE_MMAP", PropertyKind::Bool, "YES"),
    (Scope::Device, "ENABLE_HYPER_THREADING", PropertyKind::Bool, "YES"),
    (Scope::Device, "ENABLE_CPU_RESERVATION", PropertyKind::Bool, "NO"),
    (Scope::Device, "SCHEDULING_CORE_TYPE", PropertyKind::Enum(&["ANY_CORE", "PCORE_ONLY", "ECORE_ONLY"]), "ANY_CORE"),
    (Scope::Device, "LOG_LEVEL", PropertyKind::Enum(LEVELS), "LOG_NONE"),
    (Scope::Auto, "DEVICE_BIND_BUFFER", PropertyKind::Bool, "NO"),
    (Scope::Auto, "ENABLE_RUNTIME_FALLBACK", PropertyKind::Bool, "YES"),
    (Scope::Auto, HANDED_ON, PropertyKind::Enum(&["PERFORMANCE", "ACCURACY"]), "PERFORMANCE"),
];

/// One that AUTO has no row for and takes with a compilation all the same, for the device that it chooses.
const HANDED_ON: &str = "EXECUTION_MODE_HINT";

const LEVELS: &[&str] = &[
    "NO",
    "ERR",
    "ERROR",
    "WARNING",
    "INFO",
    "DEBUG",
    "TRACE",
    "LOG_NONE",
    "LOG_ERROR",
    "LOG_WARNING",
    "LOG_INFO",
    "LOG_DEBUG",
    "LOG_TRACE",
];

/// Switches of AUTO that the original takes as any text, and looks at when they are read.
const LOOKED_AT_LATER: [&str; 3] = ["DEVICE_BIND_BUFFER", "ENABLE_STARTUP_FALLBACK", "ENABLE_RUNTIME_FALLBACK"];

/// What a core keeps of properties beside those of the engine, by device and name.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    inert: BTreeMap<(String, String), String>,
    /// Values that are none, with what is wrong with each. Reading one, and compiling with it, fails.
    wrong: BTreeMap<(String, String), String>,
    /// Devices whose cache is to be encrypted; the empty name is all of them.
    pub(crate) encrypted: Vec<String>,
}

fn device_of(name: &str) -> &str {
    name.split([':', '.']).next().unwrap_or_default()
}

// How a device names a property, with its kind and default: its own table first.
fn known(core: &CoreObject, device: &str, key: &str) -> Outcome<Option<PropertyInfo>> {
    if let Some(info) = carafe::CACHE_PROPERTIES.iter().find(|p| p.name == key) {
        return Ok(Some(*info));
    }
    if device.is_empty() {
        return Ok(None);
    }
    Ok(core.core.device(device)?.properties().iter().find(|p| p.name == key).copied())
}

fn inert(device: &str, key: &str) -> Option<(PropertyKind, &'static str)> {
    let fits = |scope: Scope| match scope {
        Scope::Core => device.is_empty(),
        Scope::Device => !device.is_empty(),
        Scope::Auto => matches!(device_of(device), "AUTO" | "MULTI"),
    };
    let found = INERT.iter().find(|(scope, name, ..)| *name == key && fits(*scope));
    found.map(|(_, _, kind, default)| (*kind, *default))
}

fn check(key: &'static str, kind: PropertyKind, value: &str) -> Outcome<()> {
    let info = PropertyInfo { name: key, kind, mutability: carafe::Mutability::ReadWrite, default: "", doc: "" };
    Ok(Properties::new().with(key, value).check(&[info])?)
}

/// Sets properties of a device, or of all with an empty name.
pub(crate) fn set(core: &CoreObject, device: &str, given: &Given) -> Outcome<()> {
    given.without_handles()?;
    if given.encrypts {
        core.kept().encrypted.push(device_of(device).to_string());
    }
    given.texts.iter().try_for_each(|(key, value)| set_one(core, device, key, value))
}

fn set_one(core: &CoreObject, device: &str, key: &str, value: &str) -> Outcome<()> {
    let place = (device_of(device).to_string(), key.to_string());
    let info = known(core, device, key)?;
    if info.is_none()
        && let Some((kind, _)) = inert(device, key)
    {
        let name = INERT.iter().map(|row| row.1).find(|n| *n == key).unwrap_or_default();
        let checked = check(name, kind, value);
        let mut kept = core.kept();
        kept.wrong.remove(&place);
        match checked {
            Err(e) if LOOKED_AT_LATER.contains(&key) => {
                kept.wrong.insert(place, e.to_string());
            }
            Err(e) => return Err(e),
            Ok(()) => {
                kept.inert.insert(place, value.to_string());
            }
        }
        return Ok(());
    }
    if device.is_empty() && info.is_none() {
        return set_everywhere(core, key, value);
    }
    core.kept().wrong.remove(&place);
    match core.core.set_property(device, &Properties::new().with(key, value)) {
        Ok(()) => Ok(()),
        // As the original does, a number that is none is found out when somebody looks at it.
        Err(e) if info.is_some_and(|i| looked_at_later(&i, value)) => {
            core.kept().wrong.insert(place, e.to_string());
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

fn looked_at_later(info: &PropertyInfo, value: &str) -> bool {
    let is_number = value.trim().parse::<i64>().is_ok();
    matches!(info.kind, PropertyKind::Int { .. } if !is_number) || LOOKED_AT_LATER.contains(&info.name)
}

// Every device that has the property.
fn set_everywhere(core: &CoreObject, key: &str, value: &str) -> Outcome<()> {
    let mut taken = false;
    for name in core.core.available_devices() {
        let device = device_of(&name);
        if known(core, device, key)?.is_some() || inert(device, key).is_some() {
            set_one(core, device, key, value)?;
            taken = true;
        }
    }
    match taken {
        true => Ok(()),
        false => Err(carafe::Error::not_found(format!("no device has a property `{key}`")).into()),
    }
}

/// A property of a device as text: switches as YES and NO.
pub(crate) fn get(core: &CoreObject, device: &str, key: &str) -> Outcome<String> {
    let place = (device_of(device).to_string(), key.to_string());
    let info = known(core, device, key)?;
    {
        let kept = core.kept();
        if let Some(text) = kept.wrong.get(&place) {
            return Err(Failure::new(GENERAL_ERROR, text.clone()));
        }
        if info.is_none()
            && let Some((kind, default)) = inert(device, key)
        {
            let value = kept.inert.get(&place).map_or(default, String::as_str);
            return Ok(shown(kind, value));
        }
    }
    let value = match (device, key) {
        ("", "AVAILABLE_DEVICES") => core.core.available_devices().join(" "),
        _ => core.core.get_property(device, key)?,
    };
    Ok(shown(info.map_or(PropertyKind::Text, |i| i.kind), &value))
}

/// A value as the original writes it.
pub(crate) fn shown(kind: PropertyKind, value: &str) -> String {
    match (kind, value.trim().to_ascii_lowercase().as_str()) {
        (PropertyKind::Bool, "true" | "yes" | "1" | "on") => "YES".to_string(),
        (PropertyKind::Bool, "false" | "no" | "0" | "off") => "NO".to_string(),
        _ => value.to_string(),
    }
}

/// What reaches the engine of the properties of a compilation.
pub(crate) fn for_compilation(core: &CoreObject, device: &str, given: &Given) -> Outcome<Properties> {
    let name = device_of(device);
    {
        let kept = core.kept();
        if let Some((_, text)) = kept.wrong.iter().find(|((of, key), _)| of == name && given.texts.get(key).is_none()) {
            return Err(Failure::new(GENERAL_ERROR, text.clone()));
        }
    }
    given.without_handles()?;
    let mut left = Properties::new();
    for (key, value) in given.texts.iter() {
        match inert(device, key).filter(|_| known(core, device, key).is_ok_and(|k| k.is_none())) {
            Some(_) if key == HANDED_ON => left.set(key, value),
            Some((kind, _)) => {
                check(INERT.iter().map(|row| row.1).find(|n| *n == key).unwrap_or_default(), kind, value)?;
            }
            None => left.set(key, value),
        }
    }
    if let Some(value) = core.kept().inert.get(&(name.to_string(), HANDED_ON.to_string()))
        && left.get(HANDED_ON).is_none()
    {
        left.set(HANDED_ON, value);
    }
    let encrypts = given.encrypts || core.kept().encrypted.iter().any(|d| d.is_empty() || d == name);
    if encrypts {
        let folder = left.get("CACHE_DIR").map(str::to_string);
        let folder = folder.map_or_else(|| core.core.get_property(device, "CACHE_DIR"), Ok).unwrap_or_default();
        if !folder.is_empty() {
            return Err(Failure::new(
                NOT_IMPLEMENTED,
                format!("{ENCRYPTION} is set, and the cache in `{folder}` is not encrypted; unset one of the two"),
            ));
        }
    }
    Ok(left)
}
