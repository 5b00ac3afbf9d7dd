//! A device behind a table, as a device of this side.

use crate::calls::misuse;
use crate::convert::{Arena, fact_of, tensor_code, tensor_of};
use crate::crossing;
use crate::foreign::foreign_tensor;
use crate::graph_export::GraphBridge;
use crate::host::{end, host};
use crate::kernel_export::Operations;
use crate::kernel_sets::{KernelSet, KernelSets};
use crate::library::{Library, LoadError};
use crate::registrar::{table, up_to};
use crate::status::{guard, report};
use crate::tables::*;
use crate::text::{c_text, items, opt_c_text, text};
use carafe_device::{
    CancelFlag, CompiledModel, Device, InferRequest, Kernel, Mutability, NodeProfile, NodeStatus, Port, Properties,
    PropertyInfo, PropertyKind, Query, Stage, Unsupported, Version,
};
use carafe_graph::{Error, ErrorKind, Model, NodeId, Registry, Result};
use carafe_tensor::{SharedBytes, Tensor};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A device of a library, the name it gives itself, and the extension that the library may bring besides.
pub struct Plugin {
    pub name: String,
    pub device: Arc<dyn Device>,
    pub extension: Option<crate::Extension>,
}

/// Opens a plugin library and creates its device.
pub fn load_plugin(path: &Path) -> Result<Plugin> {
    let library = Arc::new(Library::open(path).map_err(|e| e.named(path))?);
    // SAFETY: in a library with `carafe_abi` the symbol has this type.
    let entry = unsafe { library.function::<CarafeCreatePluginEngine>("CreatePluginEngine\0") };
    let entry = entry.ok_or_else(|| {
        LoadError::NotAnExtension("it exports no `CreatePluginEngine`, so it brings no device".into()).named(path)
    })?;
    let mut filled = CarafeDevice {
        size: size_of::<CarafeDevice>(),
        abi: CARAFE_ABI_MAJOR,
        n_properties: 0,
        name: std::ptr::null(),
        version: std::ptr::null(),
        description: std::ptr::null(),
        properties: std::ptr::null(),
        instance: std::ptr::null_mut(),
        metric: None,
        query: None,
        compile: None,
        import: None,
        release: None,
        set_kernels: None,
    };
    // SAFETY: the library is built for this ABI; host lives for ever, the table until the call returns.
    library.call("CreatePluginEngine", || unsafe { entry(host(), &mut filled) })?;
    // SAFETY: the library filled in the table as its size says; zero is good for all its fields.
    let device = unsafe { ForeignDevice::new(&filled, &library) };
    let device = device.map_err(|e| e.at(format!("plugin `{}`", library.name())))?;
    let name = device.name.clone();
    let extension = crate::registrar::extension_of(&library)?;
    Ok(Plugin { name, device: Arc::new(device), extension })
}

struct ForeignDevice {
    name: String,
    version: Version,
    table: CarafeDevice,
    properties: &'static [PropertyInfo],
    registry: Operations,
    kernels: KernelSets,
    library: Arc<Library>,
}

// SAFETY: the contract lets a device be used by several threads; `library` keeps its code mapped.
unsafe impl Send for ForeignDevice {}
// SAFETY: as above.
unsafe impl Sync for ForeignDevice {}

impl std::fmt::Debug for ForeignDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.name, self.library.name())
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plugin({})", self.name)
    }
}

impl Drop for ForeignDevice {
    fn drop(&mut self) {
        if let Some(release) = self.table.release {
            // SAFETY: the device is given back once, with what it gave.
            self.library.notify("release", || unsafe { release(self.table.instance) });
        }
    }
}

impl ForeignDevice {
    /// # Safety
    /// The table must be whole.
    unsafe fn new(filled: &CarafeDevice, library: &Arc<Library>) -> Result<ForeignDevice> {
        // SAFETY: passed on from the caller; so below.
        let t = unsafe { table(filled, up_to!(CarafeDevice, release), "the table of a device")? };
        if t.query.is_none() || t.compile.is_none() {
            return Err(Error::invalid("a device needs `query` and `compile`"));
        }
        // SAFETY: as above.
        unsafe {
            let name = c_text(t.name, "the name of the device")?.to_string();
            let build = opt_c_text(t.version, "the version of the device")?.unwrap_or("").to_string();
            let description = opt_c_text(t.description, "the description")?.unwrap_or("").to_string();
            let properties = properties(items(t.properties, t.n_properties as usize, "properties")?, library)?;
            Ok(ForeignDevice {
                name,
                version: Version { build, description },
                table: t,
                properties,
                registry: Operations::default(),
                kernels: KernelSets::default(),
                library: library.clone(),
            })
        }
    }
    fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

/// A row of a property table as the library has it.
#[derive(Debug)]
struct Row<'a> {
    name: &'a str,
    kind: u32,
    bounds: [i64; 2],
    words: Vec<&'a str>,
    writable: bool,
    default: &'a str,
    doc: &'a str,
}

/// Property tables live for ever; the same one, loaded again, is not made twice.
///
/// # Safety
/// The rows must hold whole texts and lists.
unsafe fn properties(rows: &[CarafeProperty], library: &Library) -> Result<&'static [PropertyInfo]> {
    static KNOWN: Mutex<Option<HashMap<String, &'static [PropertyInfo]>>> = Mutex::new(None);
    let mut list = Vec::new();
    for row in rows {
        // SAFETY: passed on from the caller.
        let row = unsafe {
            let words = items::<*const c_char>(row.words, row.n_words, "words of a property")?;
            Row {
                name: c_text(row.name, "the name of a property")?,
                kind: row.kind,
                bounds: [row.min, row.max],
                words: words.iter().map(|w| c_text(*w, "a word of a property")).collect::<Result<_>>()?,
                writable: row.writable != 0,
                default: opt_c_text(row.default_value, "the default of a property")?.unwrap_or(""),
                doc: opt_c_text(row.doc, "the documentation of a property")?.unwrap_or(""),
            }
        };
        if row.kind > 3 {
            let (name, kind) = (row.name, row.kind);
            return Err(Error::invalid(format!("property `{name}` has kind {kind}, which does not exist")));
        }
        list.push(row);
    }
    let key = format!("{}|{list:?}", library.path().display());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    Ok(known.get_or_insert_default().entry(key).or_insert_with(|| list.iter().map(kept).collect::<Vec<_>>().leak()))
}

fn kept(row: &Row<'_>) -> PropertyInfo {
    let leak = |s: &str| -> &'static str { Box::leak(s.to_string().into_boxed_str()) };
    let [min, max] = row.bounds;
    let kind = match row.kind {
        0 => PropertyKind::Text,
        1 => PropertyKind::Bool,
        2 => PropertyKind::Int { min, max },
        _ => PropertyKind::Enum(Vec::leak(row.words.iter().map(|w| leak(w)).collect())),
    };
    let mutability = if row.writable { Mutability::ReadWrite } else { Mutability::ReadOnly };
    PropertyInfo { name: leak(row.name), kind, mutability, default: leak(row.default), doc: leak(row.doc) }
}

// Properties in crossing form.
fn settings(properties: &Properties) -> Vec<CarafeSetting> {
    properties.iter().map(|(n, v)| CarafeSetting { name: CarafeStr::of(n), value: CarafeStr::of(v) }).collect()
}

unsafe extern "C" fn write_bytes(sink: *mut c_void, data: *const c_void, bytes: usize) -> CarafeStatus {
    guard(|| {
        // SAFETY: the other side passes on the sink it was given, and as many bytes as it says.
        let (to, bytes) =
            unsafe { (crossing::sink::<Vec<u8>>(sink)?, crate::text::slice(data.cast::<u8>(), bytes, "bytes")?) };
        to.try_reserve(bytes.len())
            .map_err(|_| Error::new(ErrorKind::Io, format!("no memory for {} bytes more", bytes.len())))?;
        to.extend_from_slice(bytes);
        Ok(())
    })
}

// Calls `f` with a sink and gives what it wrote.
fn written(
    library: &Library,
    what: &'static str,
    f: impl FnOnce(CarafeWrite, *mut c_void) -> CarafeStatus,
) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let sink = (&raw mut bytes).cast();
    library.call(what, || f(write_bytes, sink))?;
    Ok(bytes)
}

fn written_text(
    library: &Library,
    what: &'static str,
    f: impl FnOnce(CarafeWrite, *mut c_void) -> CarafeStatus,
) -> Result<String> {
    String::from_utf8(written(library, what, f)?)
        .map_err(|_| library.blame(Error::invalid(format!("the answer of `{what}` is not UTF-8"))))
}

/// The answers of a device about the nodes of a model.
struct Answers<'a> {
    model: &'a Model,
    given: HashMap<u32, String>,
}

unsafe extern "C" fn answer(sink: *mut c_void, node: u32, reason: CarafeStr) -> CarafeStatus {
    guard(|| {
        // SAFETY: the device passes on the sink it was given, and a text.
        let (answers, reason) = unsafe { (crossing::sink::<Answers<'_>>(sink)?, text(reason, "a reason")?) };
        let wrong = match (answers.model.get(NodeId(node)), answers.given.get(&node)) {
            (None, _) => format!("the device answers for node {node}, which the model does not have"),
            (Some(n), Some(before)) if before != reason => {
                format!("the device answers twice for {}: `{before}` and `{reason}`", n.location())
            }
            _ => {
                answers.given.insert(node, reason.to_string());
                return Ok(());
            }
        };
        // The device may not look at what this answers.
        misuse(Error::invalid(wrong.clone()));
        Err(Error::invalid(wrong))
    })
}

impl Device for ForeignDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        self.properties
    }
    fn metric(&self, name: &str) -> Result<String> {
        let Some(metric) = self.table.metric else {
            return Err(Error::not_found(format!("device {} has no property `{name}`", self.name)));
        };
        // SAFETY: the table is whole; name and sink live until the call returns.
        written_text(&self.library, "metric", |write, sink| unsafe {
            metric(self.table.instance, CarafeStr::of(name), write, sink)
        })
    }
    fn version(&self) -> Version {
        self.version.clone()
    }
    fn set_registry(&self, registry: &Registry) {
        *self.registry.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(registry.clone());
    }
    fn set_kernels(&self, kernels: &[Arc<dyn Kernel>]) {
        let Some(set_kernels) = self.table.set_kernels else { return };
        // The name that the device has for itself; it may be registered under another.
        let done = self.kernels.give(&self.name, kernels, &self.registry, |tables| {
            let (list, n) = (tables.as_ptr(), tables.len());
            // SAFETY: the table is whole; the set keeps the kernels and their tables as long as the contract says.
            self.library.call("set_kernels", || unsafe { set_kernels(self.table.instance, list, n) })
        });
        if let Err(e) = done {
            let text = format!("device `{}` does not take the kernels of extensions: {e}", self.name);
            crate::host::warn(self.library.name(), &text);
        }
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        properties.check(self.properties)?;
        let Some(query) = self.table.query else { return Ok(Query::default()) };
        let bridge = GraphBridge::shown(Arc::new(model.clone()), self.registry());
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut answers = Answers { model, given: HashMap::new() };
        let sink = (&raw mut answers).cast();
        let _call = self.kernels.call();
        // SAFETY: the table is whole; graph, properties and sink live until the call returns.
        self.library.call("query", || unsafe { query(self.table.instance, bridge.pointer(), list, answer, sink) })?;
        let answers = answers.given;
        let mut result = Query::default();
        for (NodeId(id), node) in model.nodes() {
            let name = node.name().to_string();
            match answers.get(&id).map(String::as_str) {
                Some("") => result.supported.push(name),
                other => result.unsupported.push(Unsupported {
                    name,
                    type_name: node.op().type_name().to_string(),
                    reason: other.unwrap_or("the device did not answer for it").to_string(),
                }),
            }
        }
        Ok(result)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        properties.check(self.properties)?;
        let Some(compile) = self.table.compile else { return Err(Error::unsupported("the device compiles nothing")) };
        let bridge = GraphBridge::shown(Arc::new(model.clone()), self.registry());
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut compiled = empty_compiled();
        let (library, call) = (&self.library, self.kernels.call());
        // SAFETY: the table is whole; graph and properties live until the call returns.
        library.call("compile", || unsafe { compile(self.table.instance, bridge.pointer(), list, &mut compiled) })?;
        // SAFETY: the device filled in the table as its size says.
        let made = unsafe { ForeignCompiled::made(&compiled, &self.library, call.sets())? };
        same_ports(&made.inputs, &Port::inputs_of(model), "input")
            .and_then(|()| same_ports(&made.outputs, &Port::outputs_of(model), "output"))
            .map_err(|e| self.library.blame(e))?;
        Ok(Arc::new(made))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        properties.check(self.properties)?;
        let Some(import) = self.table.import else {
            return Err(Error::unsupported(format!("device {} cannot import models", self.name)));
        };
        let ops = GraphBridge::scratch(Arc::new(registry.clone()));
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut compiled = empty_compiled();
        let bytes = blob.as_slice();
        let (data, n) = (bytes.as_ptr().cast(), bytes.len());
        let (library, ops, call) = (&self.library, ops.pointer(), self.kernels.call());
        // SAFETY: the table is whole; operations, bytes and properties live until the call returns.
        library.call("import", || unsafe { import(self.table.instance, ops, data, n, list, &mut compiled) })?;
        // SAFETY: the device filled in the table as its size says.
        Ok(Arc::new(unsafe { ForeignCompiled::made(&compiled, &self.library, call.sets())? }))
    }
}

fn empty_compiled() -> CarafeCompiled {
    CarafeCompiled {
        size: size_of::<CarafeCompiled>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        instance: std::ptr::null_mut(),
        inputs: std::ptr::null(),
        n_inputs: 0,
        outputs: std::ptr::null(),
        n_outputs: 0,
        property: None,
        runtime_model: None,
        export_to: None,
        create_request: None,
        release: None,
    }
}

struct ForeignCompiled {
    table: CarafeCompiled,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    library: Arc<Library>,
    /// Kernels that the model may run; they go after it.
    _kernels: Vec<Arc<KernelSet>>,
}

// SAFETY: the contract lets a compiled model be used by several threads; `library` keeps its code mapped.
unsafe impl Send for ForeignCompiled {}
// SAFETY: as above.
unsafe impl Sync for ForeignCompiled {}

impl Drop for ForeignCompiled {
    fn drop(&mut self) {
        if let Some(release) = self.table.release {
            // SAFETY: given back once; requests hold this compiled model, so none is left.
            self.library.notify("release", || unsafe { release(self.table.instance) });
        }
    }
}

impl ForeignCompiled {
    /// # Safety
    /// The table must be whole.
    unsafe fn made(
        filled: &CarafeCompiled,
        library: &Arc<Library>,
        kernels: Vec<Arc<KernelSet>>,
    ) -> Result<ForeignCompiled> {
        // SAFETY: passed on from the caller; so below.
        let t = unsafe { table(filled, up_to!(CarafeCompiled, release), "the table of a compiled model") };
        let t = t.map_err(|e| library.blame(e))?;
        // From here on it is released when it goes, also by an error.
        let (inputs, outputs) = (vec![], vec![]);
        let mut compiled = ForeignCompiled { table: t, inputs, outputs, library: library.clone(), _kernels: kernels };
        if t.create_request.is_none() {
            return Err(library.blame(Error::invalid("a compiled model needs `create_request`")));
        }
        // SAFETY: as above.
        unsafe {
            compiled.inputs = ports(t.inputs, t.n_inputs).map_err(|e| library.blame(e))?;
            compiled.outputs = ports(t.outputs, t.n_outputs).map_err(|e| library.blame(e))?;
        }
        Ok(compiled)
    }
}

/// Refuses a compiled model whose ports are not those of the model that was given to the device.
fn same_ports(found: &[Port], wanted: &[Port], what: &str) -> Result<()> {
    if found.len() != wanted.len() {
        let (f, w) = (found.len(), wanted.len());
        return Err(Error::invalid(format!("the device compiled a model of {w} {what}s to one of {f}")));
    }
    for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
        let types = f.ty == w.ty || f.ty.is_dynamic() || w.ty.is_dynamic();
        if !types || !f.shape.compatible(&w.shape) {
            return Err(Error::invalid(format!(
                "{what} {i} of the model is {}[{}], of what the device compiled {}[{}]",
                w.ty, w.shape, f.ty, f.shape
            )));
        }
        // A name of one's own is the device's affair; that of another port says that they were mixed up.
        let is = |p: &Port| p.name == f.name || p.names.contains(&f.name);
        if let Some(other) = wanted.iter().position(is).filter(|_| !is(w)) {
            return Err(Error::invalid(format!(
                "{what} {i} of what the device compiled is `{}`, which is {what} {other} of the model",
                f.name
            )));
        }
    }
    Ok(())
}

/// # Safety
/// The list must hold whole ports.
unsafe fn ports(p: *const CarafeModelPort, n: usize) -> Result<Vec<Port>> {
    // SAFETY: passed on from the caller; so below.
    let list = unsafe { items(p, n, "ports of a compiled model")? };
    list.iter()
        .map(|p| {
            // SAFETY: as above.
            unsafe {
                let fact = fact_of(&p.fact)?;
                let mut names = std::collections::BTreeSet::new();
                for s in items(p.names, p.n_names, "names of a port")? {
                    names.insert(text(*s, "the name of a port")?.to_string());
                }
                Ok(Port {
                    name: text(p.name, "the name of a port")?.to_string(),
                    names,
                    ty: fact.ty,
                    shape: fact.shape,
                })
            }
        })
        .collect()
}

impl CompiledModel for ForeignCompiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        let Some(show) = self.table.runtime_model else { return Model::default() };
        // SAFETY: the table is whole; the sink lives until the call returns.
        let text = written_text(&self.library, "runtime_model", |write, sink| unsafe {
            show(self.table.instance, write, sink)
        });
        let options = carafe_ir::ReadOptions { keep_unknown: true, old_api: false, ..Default::default() };
        let none = SharedBytes::from_vec(vec![]);
        text.and_then(|xml| carafe_ir::read(&xml, none, &Registry::new(), &options)).unwrap_or_default()
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        let Some(export) = self.table.export_to else {
            return Err(Error::unsupported("the device cannot export models"));
        };
        // SAFETY: the table is whole; the sink lives until the call returns.
        let bytes =
            written(&self.library, "export_to", |write, sink| unsafe { export(self.table.instance, write, sink) })?;
        to.write_all(&bytes).map_err(|e| Error::io("cannot write the exported model", &e))
    }
    fn property(&self, name: &str) -> Result<String> {
        let Some(property) = self.table.property else {
            return Err(Error::not_found(format!("the compiled model has no property `{name}`")));
        };
        // SAFETY: the table is whole; name and sink live until the call returns.
        written_text(&self.library, "property", |write, sink| unsafe {
            property(self.table.instance, CarafeStr::of(name), write, sink)
        })
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(ForeignRequest::new(self))
    }
}

fn empty_request() -> CarafeRequest {
    CarafeRequest {
        size: size_of::<CarafeRequest>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        instance: std::ptr::null_mut(),
        set_input: None,
        infer: None,
        output: None,
        cancel: None,
        profile: None,
        variables: None,
        variable: None,
        set_variable: None,
        reset: None,
        release: None,
        stages: None,
        run_stage: None,
    }
}

/// The part of a request that another thread may reach to cancel it.
struct Handle {
    table: CarafeRequest,
    // Kept until the request is released, and its library with it.
    compiled: Arc<ForeignCompiled>,
}

// SAFETY: the contract lets `cancel` be called by another thread; the rest is used by the owner of the request alone.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(release) = self.table.release {
            // SAFETY: given back once.
            self.compiled.library.notify("release", || unsafe { release(self.table.instance) });
        }
    }
}

struct ForeignRequest {
    handle: Arc<Handle>,
    /// Why the device made no request; told at the first use.
    broken: Option<Error>,
    inputs: Vec<Option<Tensor>>,
    targets: Vec<Option<Tensor>>,
    outputs: Vec<OnceLock<Tensor>>,
    cancel: CancelFlag,
    ran: bool,
}

/// A tensor that the device may look at until it gives it back.
struct Lent {
    tensor: Tensor,
    arena: Arena,
    given_back: AtomicBool,
}

unsafe extern "C" fn give_back(owner: *mut c_void) {
    // SAFETY: `set_input` made it, and the contract gives it back once.
    let lent = unsafe { Arc::from_raw(owner.cast::<Lent>()) };
    lent.given_back.store(true, Ordering::Release);
    end("the end of an input", || drop(lent));
}

impl ForeignRequest {
    fn new(compiled: Arc<ForeignCompiled>) -> ForeignRequest {
        let mut filled = empty_request();
        let mut broken = None;
        if let Some(create) = compiled.table.create_request {
            // SAFETY: the table is whole.
            let made =
                compiled.library.call("create_request", || unsafe { create(compiled.table.instance, &mut filled) });
            broken = made.err();
        }
        // SAFETY: the device filled in the table as its size says; zero is good for all its fields.
        let table = match unsafe { table(&filled, up_to!(CarafeRequest, release), "the table of a request") } {
            Ok(t) if t.set_input.is_some() && t.infer.is_some() && t.output.is_some() => t,
            Ok(t) => {
                let error = Error::invalid("a request needs `set_input`, `infer` and `output`");
                broken.get_or_insert_with(|| compiled.library.blame(error));
                t
            }
            Err(e) => {
                broken.get_or_insert_with(|| compiled.library.blame(e));
                empty_request()
            }
        };
        let (n_inputs, n_outputs) = (compiled.inputs.len(), compiled.outputs.len());
        let handle = Arc::new(Handle { table, compiled });
        let reach = handle.clone();
        let cancel = CancelFlag::with_hook(move || {
            if let Some(cancel) = reach.table.cancel {
                // SAFETY: the request is alive as long as the handle.
                reach.compiled.library.notify("cancel", || unsafe { cancel(reach.table.instance) });
            }
        });
        ForeignRequest {
            handle,
            broken,
            inputs: vec![None; n_inputs],
            targets: vec![None; n_outputs],
            outputs: (0..n_outputs).map(|_| OnceLock::new()).collect(),
            cancel,
            ran: false,
        }
    }
    fn library(&self) -> &Library {
        &self.handle.compiled.library
    }
    fn whole(&self) -> Result<()> {
        self.broken.clone().map_or(Ok(()), Err)
    }
    fn port(ports: &[Port], index: usize, what: &str) -> Result<Port> {
        ports.get(index).cloned().ok_or_else(|| Error::not_found(format!("the model has no {what} {index}")))
    }
    // The output as the device has it now.
    fn fetch(handle: &Handle, index: usize) -> Result<Tensor> {
        let t = &handle.table;
        let library = &handle.compiled.library;
        let Some(output) = t.output else { return Err(Error::invalid("the request has no `output`")) };
        let mut code = CarafeAttr::EMPTY.tensor;
        let (mut owner, mut release) = (std::ptr::null_mut(), None);
        // SAFETY: the table is whole, the places live until the call returns.
        library.call("output", || unsafe { output(t.instance, index, &mut code, &mut owner, &mut release) })?;
        let tensor = match release {
            // SAFETY: the contract keeps the memory until `release(owner)`.
            Some(end) => unsafe { foreign_tensor(&code, owner, release, Some(library.clone())) }.inspect_err(|_| {
                // The device gave it, so it is ours to give back.
                // SAFETY: `foreign_tensor` did not take it.
                library.notify("release", || unsafe { end(owner) });
            }),
            // SAFETY: the contract keeps the memory until the next inference; it is copied now.
            None => unsafe { tensor_of(&code) },
        };
        let port = &handle.compiled.outputs[index];
        let fits = |t: &Tensor| (port.ty.is_dynamic() || port.ty == t.element_type()) && port.shape.accepts(t.shape());
        match tensor {
            Ok(t) if fits(&t) => Ok(t),
            Ok(t) => Err(library.blame(Error::invalid(format!(
                "output `{}` was declared as {}[{}], the device gave {}{:?}",
                port.name,
                port.ty,
                port.shape,
                t.element_type(),
                t.shape()
            )))),
            Err(e) => Err(library.blame(e.at(format!("output `{}`", port.name)))),
        }
    }
    // What the user gave memory for moves there.
    fn finish(&mut self) -> Result<()> {
        self.ran = true;
        for (i, target) in self.targets.iter_mut().enumerate() {
            let Some(mut memory) = target.take() else { continue };
            let fresh = ForeignRequest::fetch(&self.handle, i)?;
            if memory.element_type() == fresh.element_type() && memory.shape() == fresh.shape() {
                memory.copy_elements(0, &fresh, 0, fresh.len())?;
                *target = Some(memory.clone());
                let _ = self.outputs[i].set(memory);
            }
        }
        Ok(())
    }
    // All of an inference in one call. The device may forget a cancellation that came before the call or at its beginning;
    // it is looked for before and after.
    fn run_whole(&mut self) -> Result<()> {
        self.begin()?;
        self.not_cancelled()?;
        let t = &self.handle.table;
        let Some(infer) = t.infer else { return Err(Error::invalid("the request has no `infer`")) };
        // SAFETY: the table is whole; this is the only thread that uses the request, but for `cancel`.
        self.library().call("infer", || unsafe { infer(t.instance) })?;
        self.not_cancelled()?;
        self.finish()
    }
    fn not_cancelled(&self) -> Result<()> {
        match self.cancel.is_set() {
            true => Err(Error::new(ErrorKind::Cancelled, "the inference was cancelled")),
            false => Ok(()),
        }
    }
    fn begin(&mut self) -> Result<()> {
        self.whole()?;
        if let Some(i) = self.inputs.iter().position(Option::is_none) {
            let name = &self.handle.compiled.inputs[i].name;
            return Err(Error::usage(format!("input `{name}` has no tensor")));
        }
        self.outputs.iter_mut().for_each(|o| {
            o.take();
        });
        self.ran = false;
        Ok(())
    }
}

fn request_stages(handle: &Handle) -> Option<Vec<Stage>> {
    let (t, library) = (&handle.table, &handle.compiled.library);
    let stages = t.stages.filter(|_| t.run_stage.is_some())?;
    // SAFETY: the table is whole; the sink lives until the call returns.
    let text = written_text(library, "stages", |write, sink| unsafe { stages(t.instance, write, sink) }).ok()?;
    let words: Vec<&str> = text.split_terminator('\0').collect();
    let list = words.chunks_exact(2).map(|w| Stage { name: w[0].into(), executor: w[1].into() });
    Some(list.collect()).filter(|l: &Vec<Stage>| !l.is_empty())
}

impl InferRequest for ForeignRequest {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        self.whole()?;
        let port = ForeignRequest::port(&self.handle.compiled.inputs, index, "input")?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        let t = &self.handle.table;
        let Some(set) = t.set_input else { return Err(Error::invalid("the request has no `set_input`")) };
        let mut lent =
            Box::new(Lent { tensor: tensor.clone(), arena: Arena::default(), given_back: AtomicBool::new(false) });
        let Lent { tensor: inner, arena, .. } = &mut *lent;
        let code = tensor_code(inner, arena);
        let lent: Arc<Lent> = Arc::from(lent);
        let owner = Arc::into_raw(lent.clone()).cast_mut().cast();
        // SAFETY: the table is whole; the owner keeps shape and bytes until the device gives it back.
        let set = self.library().call("set_input", || unsafe { set(t.instance, index, &code, owner, Some(give_back)) });
        if set.is_err() && !lent.given_back.load(Ordering::Acquire) {
            // A device that fails takes nothing. Those built before this was written down may have given it back all the
            // same.
            // SAFETY: the owner was not given back, so it is this side's again.
            drop(unsafe { Arc::from_raw(owner.cast::<Lent>()) });
        }
        set?;
        self.inputs[index] = Some(tensor);
        Ok(())
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index)?.as_ref()
    }
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = ForeignRequest::port(&self.handle.compiled.outputs, index, "output")?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        if self.ran {
            self.outputs[index] = OnceLock::from(tensor.clone());
        }
        self.targets[index] = Some(tensor);
        Ok(())
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        self.run_whole()
    }
    fn stages(&self) -> Vec<Stage> {
        let one = || vec![Stage { name: "infer".into(), executor: "infer".into() }];
        request_stages(&self.handle).unwrap_or_else(one)
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        let Some(list) = request_stages(&self.handle) else { return self.run_whole() };
        if stage == 0 {
            self.begin()?;
        }
        // The device forgets cancellations of earlier runs at its first stage; one of this run is not lost, because it is
        // looked for before and after.
        self.not_cancelled()?;
        let t = &self.handle.table;
        let Some(run) = t.run_stage else { return Err(Error::invalid("the request has no `run_stage`")) };
        // SAFETY: as in `infer`.
        self.library().call("run_stage", || unsafe { run(t.instance, stage) })?;
        self.not_cancelled()?;
        if stage + 1 == list.len() { self.finish() } else { Ok(()) }
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.whole()?;
        ForeignRequest::port(&self.handle.compiled.outputs, index, "output")?;
        if !self.ran {
            return Err(Error::usage("nothing was inferred yet"));
        }
        if let Some(t) = self.outputs[index].get() {
            return Ok(t);
        }
        let fresh = ForeignRequest::fetch(&self.handle, index)?;
        Ok(self.outputs[index].get_or_init(|| fresh))
    }
    fn profile(&self) -> Vec<NodeProfile> {
        unsafe extern "C" fn take(sink: *mut c_void, row: *const CarafeProfile) -> CarafeStatus {
            guard(|| {
                // SAFETY: the device passes on the sink it was given; null is refused.
                let (list, row) = unsafe { (crossing::sink::<Vec<NodeProfile>>(sink)?, row.as_ref()) };
                let row = row.ok_or_else(|| Error::usage("a null pointer for a row"))?;
                // SAFETY: the contract gives texts.
                let [name, type_name, kernel] =
                    unsafe { [text(row.name, "a name")?, text(row.op_type, "a type")?, text(row.kernel, "a kernel")?] }
                        .map(str::to_string);
                let status = match row.status {
                    1 => NodeStatus::OptimizedOut,
                    2 => NodeStatus::Executed,
                    _ => NodeStatus::NotRun,
                };
                let (real_time, cpu_time) = (Duration::from_nanos(row.real_ns), Duration::from_nanos(row.cpu_ns));
                list.push(NodeProfile { name, type_name, kernel, status, real_time, cpu_time });
                Ok(())
            })
        }
        let t = &self.handle.table;
        let mut rows: Vec<NodeProfile> = Vec::new();
        if let Some(profile) = t.profile {
            let sink = (&raw mut rows).cast();
            // SAFETY: the table is whole; the sink lives until the call returns.
            let told = self.library().call("profile", || unsafe { profile(t.instance, take, sink) });
            if told.is_err() {
                rows.clear();
            }
        }
        rows
    }
    fn variables(&self) -> Vec<String> {
        let t = &self.handle.table;
        let Some(variables) = t.variables else { return vec![] };
        // SAFETY: the table is whole; the sink lives until the call returns.
        let text =
            written_text(self.library(), "variables", |write, sink| unsafe { variables(t.instance, write, sink) });
        text.unwrap_or_default().split_terminator('\0').map(str::to_string).collect()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        let t = &self.handle.table;
        let ids = self.variables();
        let Some(variable) = t.variable.filter(|_| ids.iter().any(|v| v == id)) else {
            return Err(Error::not_found(format!("no variable `{id}`; the model has: {}", ids.join(", "))));
        };
        let mut code = CarafeAttr::EMPTY.tensor;
        let library = self.library();
        // SAFETY: the table is whole; what comes back is copied before the next call.
        match library.status("variable", || unsafe { variable(t.instance, CarafeStr::of(id), &mut code) })? {
            CARAFE_NOT_FOUND => Ok(None),
            status => {
                report(status, library.name())?;
                // SAFETY: as above.
                unsafe { tensor_of(&code) }.map(Some).map_err(|e| library.blame(e))
            }
        }
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        let t = &self.handle.table;
        let Some(set) = t.set_variable else { return Err(Error::not_found(format!("no variable `{id}`"))) };
        let mut arena = Arena::default();
        let code = tensor_code(&value, &mut arena);
        // SAFETY: the table is whole; the tensor lives until the call returns.
        self.library().call("set_variable", || unsafe { set(t.instance, CarafeStr::of(id), &code) })
    }
    fn reset_variables(&mut self) {
        if let Some(reset) = self.handle.table.reset {
            // SAFETY: the table is whole.
            self.library().notify("reset", || unsafe { reset(self.handle.table.instance) });
        }
    }
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
