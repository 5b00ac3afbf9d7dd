//! `ov_core.h`: reading and compiling models, devices, properties, extensions.

use crate::compiled_model::{CompiledHandle, CompiledObject};
use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::log;
use crate::model::{ModelHandle, ModelObject};
use crate::pointers::{List, Out, Text, WideText};
use crate::properties::{self, Given, Kept, Property};
use crate::status::{Failure, NOT_FOUND, Outcome, Status, guard, set_last_error};
use crate::tensor::TensorObject;
use crate::variadic::{Words, variadic};
use carafe::{Content, Core, ReadRequest, SharedBytes};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `ov_core_t`.
#[derive(Debug)]
pub struct CoreObject {
    pub(crate) core: Core,
    kept: Mutex<Kept>,
}

impl Object for CoreObject {
    const KIND: &'static str = "ov_core_t";
}

pub(crate) type CoreHandle = Handle<CoreObject>;

impl CoreObject {
    pub(crate) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `ov_version_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Version {
    build_number: *mut c_char,
    description: *mut c_char,
}

/// `ov_core_version_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceVersion {
    device_name: *mut c_char,
    version: Version,
}

/// A list that goes to the caller: `ov_core_version_list_t`, `ov_available_devices_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OwnedList<T> {
    items: *mut T,
    size: usize,
}

impl<T: Copy> OwnedList<T> {
    pub(crate) fn of(items: &[T]) -> Outcome<OwnedList<T>> {
        Ok(OwnedList { items: heap::list(items)?, size: items.len() })
    }
    /// The items of a list that [`OwnedList::of`] made, which ends here.
    pub(crate) fn empty(list: Out<OwnedList<T>>, each: impl Fn(&T)) {
        let Ok(old) = list.get("list") else { return };
        if !old.items.is_null() {
            // SAFETY: a list that is not empty was made by `of` with so many items, and is freed once: it is emptied below.
            unsafe { std::slice::from_raw_parts(old.items, old.size) }.iter().for_each(each);
            heap::release(old.items);
        }
        let _ = list.set(OwnedList { items: ptr::null_mut(), size: 0 }, "list");
    }
}

/// What programs that ask for a version of OpenVINO get: the release whose API this is, then our own.
const BUILD: &str = concat!("2026.4.1-", env!("CARGO_PKG_VERSION"), "-carafe");

/// The version of the API and of the engine; to be freed with `ov_version_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_get_openvino_version(version: Out<Version>) -> Status {
    guard(|| {
        version.check("version")?;
        let description = heap::text("Carafe, the C API of OpenVINO Runtime")?;
        version.set(Version { build_number: heap::text(BUILD)?, description }, "version")
    })
}

/// Frees the texts of a version.
#[unsafe(no_mangle)]
pub extern "C" fn ov_version_free(version: Out<Version>) {
    if let Ok(old) = version.get("version") {
        heap::release(old.build_number);
        heap::release(old.description);
        let _ = version.set(Version { build_number: ptr::null_mut(), description: ptr::null_mut() }, "version");
    }
}

fn create(config: Option<&str>, core: Out<CoreHandle>) -> Outcome<()> {
    core.check("core")?;
    log::listen();
    let made = carafe::core();
    if let Some(file) = config.filter(|f| !f.is_empty()) {
        made.register_plugins(file)?;
    }
    core.set(hand_out(Arc::new(CoreObject { core: made, kept: Mutex::default() })), "core")
}

/// A core with everything that is built in.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_create(core: Out<CoreHandle>) -> Status {
    guard(|| create(None, core))
}

/// A core with the plugins of a plugins.xml beside what is built in.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_create_with_config(xml_config_file: Text, core: Out<CoreHandle>) -> Status {
    guard(|| create(Some(xml_config_file.get("xml_config_file")?), core))
}

/// As `ov_core_create_with_config`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_create_with_config_unicode(xml_config_file: WideText, core: Out<CoreHandle>) -> Status {
    guard(|| create(Some(&xml_config_file.get("xml_config_file")?), core))
}

/// Frees a core and forgets the last error. Models and compiled models stay.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_free(core: CoreHandle) {
    if let Some(core) = core.take() {
        drop(core);
        set_last_error(None);
    }
}

/// Nothing to do: what the process shares goes with it.
#[unsafe(no_mangle)]
pub extern "C" fn ov_shutdown() {}

fn read(core: CoreHandle, model: &str, weights: Option<&str>, to: Out<ModelHandle>) -> Outcome<()> {
    to.check("model")?;
    let core = core.get("core")?;
    let weights = weights.filter(|w| !w.is_empty()).map(|w| Content::File(Path::new(w)));
    let model = core.core.read(&ReadRequest { weights, ..ReadRequest::new(Path::new(model)) })?;
    to.set(hand_out(Arc::new(ModelObject::new(model))), "model")
}

/// Reads a model of any format; weights are looked for beside it unless they are given.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_read_model(
    core: CoreHandle,
    model_path: Text,
    bin_path: Text,
    model: Out<ModelHandle>,
) -> Status {
    guard(|| read(core, model_path.get("model_path")?, bin_path.get_if_any("bin_path")?, model))
}

/// As `ov_core_read_model`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_read_model_unicode(
    core: CoreHandle,
    model_path: WideText,
    bin_path: WideText,
    model: Out<ModelHandle>,
) -> Status {
    guard(|| read(core, &model_path.get("model_path")?, bin_path.get_if_any("bin_path")?.as_deref(), model))
}

/// Reads a model out of memory. The bytes are copied; weights are used where they are.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_read_model_from_memory_buffer(
    core: CoreHandle,
    model_str: List<u8>,
    str_len: usize,
    weights: Handle<TensorObject>,
    model: Out<ModelHandle>,
) -> Status {
    guard(|| {
        model.check("model")?;
        let core = core.get("core")?;
        if str_len == 0 {
            return Err(Failure::argument("`str_len` is 0"));
        }
        let mut bytes = model_str.get(str_len, "model_str")?;
        // The length of a text is often given with its end.
        if bytes.first() == Some(&b'<') {
            bytes = bytes.trim_ascii_end();
            while let [rest @ .., 0] = bytes {
                bytes = rest;
            }
        }
        let weights = weights.get_if_any("weights")?.map(|w| w.to_bytes()).transpose()?;
        let read = core.core.read_model_from(bytes, weights)?;
        model.set(hand_out(Arc::new(ModelObject::new(read))), "model")
    })
}

/// What is compiled.
enum Source<'a> {
    Model(ModelHandle),
    File(&'a str),
}

fn compile(core: CoreHandle, source: Source<'_>, device: Text, given: &Given, to: Out<CompiledHandle>) -> Outcome<()> {
    to.check("compiled_model")?;
    let core = core.get("core")?;
    let device = device.get_if_any("device_name")?.filter(|d| !d.is_empty()).unwrap_or("AUTO");
    let properties = properties::for_compilation(&core, device, given)?;
    let compiled = match source {
        Source::Model(model) => {
            let object = model.get("model")?;
            let model = object.model().clone();
            core.core.compile_model(&model, device, &properties)?
        }
        Source::File(path) => core.core.compile_model(path, device, &properties)?,
    };
    to.set(hand_out(Arc::new(CompiledObject::new(compiled, core, device))), "compiled_model")
}

// The variable arguments of the functions that compile: core, what, device, their number, where to.
fn compile_words(words: &mut Words, source: impl FnOnce(*mut std::ffi::c_void) -> Outcome<Owned>) -> Outcome<()> {
    let core = CoreHandle::of_word(words.next());
    let what = words.pointer();
    let device = Text::of_word(words.pointer());
    let count = words.next();
    let to = Out::of_word(words.pointer());
    let given = Given::of_words(words, count)?;
    match source(what)? {
        Owned::Model(model) => compile(core, Source::Model(model), device, &given, to),
        Owned::File(path) => compile(core, Source::File(&path), device, &given, to),
    }
}

enum Owned {
    Model(ModelHandle),
    File(String),
}

fn compile_model(words: &mut Words) -> Outcome<()> {
    compile_words(words, |what| Ok(Owned::Model(ModelHandle::of_word(what.addr()))))
}
variadic!(ov_core_compile_model, compile_model_entry, compile_model);

fn compile_file(words: &mut Words) -> Outcome<()> {
    compile_words(words, |what| Ok(Owned::File(Text::of_word(what).get("model_path")?.to_string())))
}
variadic!(ov_core_compile_model_from_file, compile_file_entry, compile_file);

fn compile_wide_file(words: &mut Words) -> Outcome<()> {
    compile_words(words, |what| Ok(Owned::File(WideText::of_word(what).get("model_path")?)))
}
variadic!(ov_core_compile_model_from_file_unicode, compile_wide_file_entry, compile_wide_file);

/// Makes a model ready for a device; without a name AUTO.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_compile_model_props(
    core: CoreHandle,
    model: ModelHandle,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| {
        let given = Given::of_list(properties, num_properties)?;
        compile(core, Source::Model(model), device_name, &given, compiled_model)
    })
}

/// Reads a file and makes its model ready for a device.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_compile_model_from_file_props(
    core: CoreHandle,
    model_path: Text,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| {
        let given = Given::of_list(properties, num_properties)?;
        compile(core, Source::File(model_path.get("model_path")?), device_name, &given, compiled_model)
    })
}

/// As `ov_core_compile_model_from_file_props`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_compile_model_from_file_unicode_props(
    core: CoreHandle,
    model_path: WideText,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| {
        let given = Given::of_list(properties, num_properties)?;
        compile(core, Source::File(&model_path.get("model_path")?), device_name, &given, compiled_model)
    })
}

/// Adds a library of operations, rules, kernels or rewrites, written with the SDK of Carafe.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_add_extension(core: CoreHandle, path: Text) -> Status {
    guard(|| {
        let core = core.get("core")?;
        Ok(core.core.add_extension(Path::new(path.get("path")?))?)
    })
}

// core, device, then exactly one pair.
fn set_property(words: &mut Words) -> Outcome<()> {
    let core = CoreHandle::of_word(words.next());
    let device = Text::of_word(words.pointer());
    let core = core.get("core")?;
    let given = Given::of_words(words, 2)?;
    properties::set(&core, device.get_if_any("device_name")?.unwrap_or_default(), &given)
}
variadic!(ov_core_set_property, set_property_entry, set_property);

/// Sets properties of a device; without a name of all.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_set_properties(
    core: CoreHandle,
    device_name: Text,
    num_properties: usize,
    properties: List<Property>,
) -> Status {
    guard(|| {
        let core = core.get("core")?;
        let given = Given::of_list(properties, num_properties)?;
        properties::set(&core, device_name.get_if_any("device_name")?.unwrap_or_default(), &given)
    })
}

/// A property of a device as text, to be freed with `ov_free`; switches are YES and NO.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_get_property(
    core: CoreHandle,
    device_name: Text,
    property_key: Text,
    property_value: Out<*mut c_char>,
) -> Status {
    guard(|| {
        property_value.check("property_value")?;
        let core = core.get("core")?;
        let value = properties::get(&core, device_name.get("device_name")?, property_key.get("property_key")?)?;
        property_value.set(heap::text(&value)?, "property_value")
    })
}

/// Names of the devices that are here; to be freed with `ov_available_devices_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_get_available_devices(core: CoreHandle, devices: Out<OwnedList<*mut c_char>>) -> Status {
    guard(|| {
        devices.check("devices")?;
        let names = core.get("core")?.core.available_devices();
        let names = names.iter().map(|n| heap::text(n)).collect::<Outcome<Vec<_>>>()?;
        devices.set(OwnedList::of(&names)?, "devices")
    })
}

/// Frees a list of names.
#[unsafe(no_mangle)]
pub extern "C" fn ov_available_devices_free(devices: Out<OwnedList<*mut c_char>>) {
    OwnedList::empty(devices, |name| heap::release(*name));
}

/// Loads what `ov_compiled_model_export_model` wrote.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_import_model(
    core: CoreHandle,
    content: List<u8>,
    content_size: usize,
    device_name: Text,
    compiled_model: Out<CompiledHandle>,
) -> Status {
    guard(|| {
        compiled_model.check("compiled_model")?;
        let core = core.get("core")?;
        let device = device_name.get("device_name")?;
        if content_size == 0 {
            return Err(Failure::argument("`content_size` is 0"));
        }
        let blob = SharedBytes::from(content.get(content_size, "content")?);
        let properties = properties::for_compilation(&core, device, &Given::default())?;
        let compiled = core.core.import_model(blob, device, &properties)?;
        compiled_model.set(hand_out(Arc::new(CompiledObject::new(compiled, core, device))), "compiled_model")
    })
}

/// Versions of a device, and of those that it is made of; to be freed with `ov_core_versions_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_get_versions_by_device_name(
    core: CoreHandle,
    device_name: Text,
    versions: Out<OwnedList<DeviceVersion>>,
) -> Status {
    guard(|| {
        versions.check("versions")?;
        let core = core.get("core")?;
        let name = device_name.get("device_name")?;
        let (first, list) = name.split_once(':').unwrap_or((name, ""));
        let parts = list.split(',').map(|n| n.trim().split('(').next().unwrap_or_default());
        let mut all = Vec::new();
        for device in std::iter::once(first).chain(parts).filter(|n| !n.is_empty()) {
            let found = core.core.device(device)?.version();
            let version = Version {
                build_number: heap::text(&format!("{BUILD}-{}", found.build))?,
                description: heap::text(&found.description)?,
            };
            all.push(DeviceVersion { device_name: heap::text(device)?, version });
        }
        if all.is_empty() {
            return Err(Failure::new(NOT_FOUND, format!("`{name}` names no device")));
        }
        versions.set(OwnedList::of(&all)?, "versions")
    })
}

/// Frees a list of versions.
#[unsafe(no_mangle)]
pub extern "C" fn ov_core_versions_free(versions: Out<OwnedList<DeviceVersion>>) {
    OwnedList::empty(versions, |v| {
        heap::release(v.device_name);
        heap::release(v.version.build_number);
        heap::release(v.version.description);
    });
}
