//! A device behind a table, as a device of this side.

use crate::convert::{Arena, fact_of, foreign_tensor, tensor_code, tensor_of};
use crate::graph_export::GraphBridge;
use crate::host::host;
use crate::kernel_export::kernel_table;
use crate::library::{Library, LoadError};
use crate::op_export::c_leak;
use crate::registrar::{table, up_to};
use crate::status::{guard, report, set_text};
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
use std::sync::{Arc, Mutex, OnceLock, RwLock};
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
    set_text("");
    // SAFETY: the library is built for this ABI; host lives for ever, the table until the call returns.
    report(unsafe { entry(host(), &mut filled) }, library.name())?;
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
    registry: RwLock<Arc<Registry>>,
    /// Whether the device was ever given kernels.
    has_kernels: AtomicBool,
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
            unsafe { release(self.table.instance) }
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
                registry: RwLock::default(),
                has_kernels: AtomicBool::new(false),
                library: library.clone(),
            })
        }
    }
    fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(|e| e.into_inner()).clone()
    }
    fn called(&self, status: CarafeStatus) -> Result<()> {
        report(status, self.library.name())
    }
}

// Property tables live for ever; the same one, loaded again, is not made twice.
///
/// # Safety
/// The rows must hold whole texts and lists.
unsafe fn properties(rows: &[CarafeProperty], library: &Library) -> Result<&'static [PropertyInfo]> {
    static KNOWN: Mutex<Option<HashMap<String, &'static [PropertyInfo]>>> = Mutex::new(None);
    let leak = |s: &str| -> &'static str { Box::leak(s.to_string().into_boxed_str()) };
    let mut list = Vec::new();
    for row in rows {
        // SAFETY: passed on from the caller.
        let (name, default, doc, words) = unsafe {
            let words: Vec<&str> = items::<*const c_char>(row.words, row.n_words, "words of a property")?
                .iter()
                .map(|w| c_text(*w, "a word of a property"))
                .collect::<Result<_>>()?;
            (
                c_text(row.name, "the name of a property")?,
                opt_c_text(row.default_value, "the default of a property")?.unwrap_or(""),
                opt_c_text(row.doc, "the documentation of a property")?.unwrap_or(""),
                words,
            )
        };
        let kind = match row.kind {
            0 => PropertyKind::Text,
            1 => PropertyKind::Bool,
            2 => PropertyKind::Int { min: row.min, max: row.max },
            3 => PropertyKind::Enum(Vec::leak(words.into_iter().map(leak).collect())),
            other => return Err(Error::invalid(format!("property `{name}` has kind {other}, which does not exist"))),
        };
        let mutability = if row.writable == 0 { Mutability::ReadOnly } else { Mutability::ReadWrite };
        list.push(PropertyInfo { name: leak(name), kind, mutability, default: leak(default), doc: leak(doc) });
    }
    let key = format!("{}|{list:?}", library.path().display());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    Ok(known.get_or_insert_default().entry(key).or_insert_with(|| list.leak()))
}

// Properties in crossing form.
fn settings(properties: &Properties) -> Vec<CarafeSetting> {
    properties.iter().map(|(n, v)| CarafeSetting { name: CarafeStr::of(n), value: CarafeStr::of(v) }).collect()
}

unsafe extern "C" fn write_bytes(sink: *mut c_void, data: *const c_void, bytes: usize) -> CarafeStatus {
    guard(|| {
        // SAFETY: the other side passes on the sink it was given, and as many bytes as it says.
        let (to, bytes) =
            unsafe { (&mut *sink.cast::<Vec<u8>>(), crate::text::slice(data.cast::<u8>(), bytes, "bytes")?) };
        to.extend_from_slice(bytes);
        Ok(())
    })
}

// Calls `f` with a sink and gives what it wrote.
fn written(library: &Library, f: impl FnOnce(CarafeWrite, *mut c_void) -> CarafeStatus) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    set_text("");
    report(f(write_bytes, (&raw mut bytes).cast()), library.name())?;
    Ok(bytes)
}

fn written_text(library: &Library, f: impl FnOnce(CarafeWrite, *mut c_void) -> CarafeStatus) -> Result<String> {
    String::from_utf8(written(library, f)?).map_err(|_| Error::invalid("the answer is not UTF-8"))
}

unsafe extern "C" fn answer(sink: *mut c_void, node: u32, reason: CarafeStr) -> CarafeStatus {
    guard(|| {
        // SAFETY: the device passes on the sink it was given, and a text.
        let (list, reason) = unsafe { (&mut *sink.cast::<Vec<(u32, String)>>(), text(reason, "a reason")?) };
        list.push((node, reason.to_string()));
        Ok(())
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
        written_text(&self.library, |write, sink| unsafe {
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
        // A device that never had any need not hear of none.
        if kernels.is_empty() && !self.has_kernels.load(Ordering::Acquire) {
            return;
        }
        self.has_kernels.store(true, Ordering::Release);
        // The name that the device has for itself; it may be registered under another.
        let made = |k: &Arc<dyn Kernel>| CarafeKernel { device: c_leak(&self.name), ..kernel_table(k.clone()) };
        let tables: &[CarafeKernel] = kernels.iter().map(made).collect::<Vec<_>>().leak();
        set_text("");
        // SAFETY: the table is whole; the kernels and their tables live until the process ends.
        let done = self.called(unsafe { set_kernels(self.table.instance, tables.as_ptr(), tables.len()) });
        if let Err(e) = done {
            let text = format!("device `{}` does not take the kernels of extensions: {e}", self.name);
            // SAFETY: the table lives for ever, and does not keep the text.
            unsafe { (host().log)(1, CarafeStr::of(&text)) };
        }
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        properties.check(self.properties)?;
        let Some(query) = self.table.query else { return Ok(Query::default()) };
        let mut bridge = GraphBridge::shown(Arc::new(model.clone()), self.registry());
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut answers: Vec<(u32, String)> = Vec::new();
        set_text("");
        // SAFETY: the table is whole; graph, properties and sink live until the call returns.
        self.called(unsafe { query(self.table.instance, bridge.pointer(), list, answer, (&raw mut answers).cast()) })?;
        let answers: HashMap<u32, String> = answers.into_iter().collect();
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
        let mut bridge = GraphBridge::shown(Arc::new(model.clone()), self.registry());
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut compiled = empty_compiled();
        set_text("");
        // SAFETY: the table is whole; graph and properties live until the call returns.
        self.called(unsafe { compile(self.table.instance, bridge.pointer(), list, &mut compiled) })?;
        // SAFETY: the device filled in the table as its size says.
        unsafe { ForeignCompiled::made(&compiled, &self.library) }
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
        let mut ops = GraphBridge::scratch(Arc::new(registry.clone()));
        let settings = settings(properties);
        let list = CarafeProperties { list: settings.as_ptr(), n: settings.len() };
        let mut compiled = empty_compiled();
        let bytes = blob.as_slice();
        set_text("");
        // SAFETY: the table is whole; operations, bytes and properties live until the call returns.
        self.called(unsafe {
            let (data, n) = (bytes.as_ptr().cast(), bytes.len());
            import(self.table.instance, ops.pointer(), data, n, list, &mut compiled)
        })?;
        // SAFETY: the device filled in the table as its size says.
        unsafe { ForeignCompiled::made(&compiled, &self.library) }
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
}

// SAFETY: the contract lets a compiled model be used by several threads; `library` keeps its code mapped.
unsafe impl Send for ForeignCompiled {}
// SAFETY: as above.
unsafe impl Sync for ForeignCompiled {}

impl Drop for ForeignCompiled {
    fn drop(&mut self) {
        if let Some(release) = self.table.release {
            // SAFETY: given back once; requests hold this compiled model, so none is left.
            unsafe { release(self.table.instance) }
        }
    }
}

impl ForeignCompiled {
    /// # Safety
    /// The table must be whole.
    unsafe fn made(filled: &CarafeCompiled, library: &Arc<Library>) -> Result<Arc<dyn CompiledModel>> {
        // SAFETY: passed on from the caller; so below.
        let t = unsafe { table(filled, up_to!(CarafeCompiled, release), "the table of a compiled model")? };
        let mut compiled = ForeignCompiled { table: t, inputs: vec![], outputs: vec![], library: library.clone() };
        if t.create_request.is_none() {
            return Err(Error::invalid("a compiled model needs `create_request`"));
        }
        // SAFETY: as above.
        unsafe {
            compiled.inputs = ports(t.inputs, t.n_inputs)?;
            compiled.outputs = ports(t.outputs, t.n_outputs)?;
        }
        Ok(Arc::new(compiled))
    }
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
        let text = written_text(&self.library, |write, sink| unsafe { show(self.table.instance, write, sink) });
        let options = carafe_ir::ReadOptions { keep_unknown: true, old_api: false, ..Default::default() };
        let none = SharedBytes::from_vec(vec![]);
        text.and_then(|xml| carafe_ir::read(&xml, none, &Registry::new(), &options)).unwrap_or_default()
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        let Some(export) = self.table.export_to else {
            return Err(Error::unsupported("the device cannot export models"));
        };
        // SAFETY: the table is whole; the sink lives until the call returns.
        let bytes = written(&self.library, |write, sink| unsafe { export(self.table.instance, write, sink) })?;
        to.write_all(&bytes).map_err(|e| Error::io("cannot write the exported model", &e))
    }
    fn property(&self, name: &str) -> Result<String> {
        let Some(property) = self.table.property else {
            return Err(Error::not_found(format!("the compiled model has no property `{name}`")));
        };
        // SAFETY: the table is whole; name and sink live until the call returns.
        written_text(&self.library, |write, sink| unsafe {
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
            unsafe { release(self.table.instance) }
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
    _arena: Arena,
}

unsafe extern "C" fn give_back(owner: *mut c_void) {
    // SAFETY: `set_input` made the box, and the contract gives it back once.
    drop(unsafe { Box::from_raw(owner.cast::<Lent>()) });
}

impl ForeignRequest {
    fn new(compiled: Arc<ForeignCompiled>) -> ForeignRequest {
        let mut filled = empty_request();
        let mut broken = None;
        if let Some(create) = compiled.table.create_request {
            set_text("");
            // SAFETY: the table is whole.
            let status = unsafe { create(compiled.table.instance, &mut filled) };
            broken = crate::status::take_error(status, compiled.library.name());
        }
        // SAFETY: the device filled in the table as its size says; zero is good for all its fields.
        let table = match unsafe { table(&filled, up_to!(CarafeRequest, release), "the table of a request") } {
            Ok(t) if t.set_input.is_some() && t.infer.is_some() && t.output.is_some() => t,
            Ok(t) => {
                broken.get_or_insert_with(|| Error::invalid("a request needs `set_input`, `infer` and `output`"));
                t
            }
            Err(e) => {
                broken.get_or_insert(e);
                empty_request()
            }
        };
        let (n_inputs, n_outputs) = (compiled.inputs.len(), compiled.outputs.len());
        let handle = Arc::new(Handle { table, compiled });
        let reach = handle.clone();
        let cancel = CancelFlag::with_hook(move || {
            if let Some(cancel) = reach.table.cancel {
                // SAFETY: the request is alive as long as the handle.
                unsafe { cancel(reach.table.instance) }
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
        set_text("");
        // SAFETY: the table is whole, the places live until the call returns.
        report(unsafe { output(t.instance, index, &mut code, &mut owner, &mut release) }, library.name())?;
        match release {
            // SAFETY: the contract keeps the memory until `release(owner)`.
            Some(release) => unsafe { foreign_tensor(&code, owner, release, Some(library.clone())) },
            // SAFETY: the contract keeps the memory until the next inference; it is copied now.
            None => unsafe { tensor_of(&code) },
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
    let text = written_text(library, |write, sink| unsafe { stages(t.instance, write, sink) }).ok()?;
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
        let mut arena = Arena::default();
        let mut lent = Box::new(Lent { tensor: tensor.clone(), _arena: Arena::default() });
        let code = tensor_code(&lent.tensor, &mut arena);
        lent._arena = arena;
        set_text("");
        // SAFETY: the table is whole; the box keeps shape and bytes until the device gives it back.
        let status = unsafe { set(t.instance, index, &code, Box::into_raw(lent).cast(), give_back) };
        report(status, self.library().name())?;
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
        self.begin()?;
        self.cancel.clear();
        let t = &self.handle.table;
        let Some(infer) = t.infer else { return Err(Error::invalid("the request has no `infer`")) };
        set_text("");
        // SAFETY: the table is whole; this is the only thread that uses the request, but for `cancel`.
        report(unsafe { infer(t.instance) }, self.library().name())?;
        self.finish()
    }
    fn stages(&self) -> Vec<Stage> {
        let one = || vec![Stage { name: "infer".into(), executor: "infer".into() }];
        request_stages(&self.handle).unwrap_or_else(one)
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        let Some(list) = request_stages(&self.handle) else { return self.infer() };
        if stage == 0 {
            self.begin()?;
        }
        // The device forgets cancellations of earlier runs at its first stage; one of this run is not lost, because it is
        // looked for before and after.
        self.not_cancelled()?;
        let t = &self.handle.table;
        let Some(run) = t.run_stage else { return Err(Error::invalid("the request has no `run_stage`")) };
        set_text("");
        // SAFETY: as in `infer`.
        report(unsafe { run(t.instance, stage) }, self.library().name())?;
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
                // SAFETY: the device passes on the sink it was given; null is refused for the row.
                let (list, row) = unsafe { (&mut *sink.cast::<Vec<NodeProfile>>(), row.as_ref()) };
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
            // SAFETY: the table is whole; the sink lives until the call returns.
            let status = unsafe { profile(t.instance, take, (&raw mut rows).cast()) };
            if status != CARAFE_OK {
                rows.clear();
            }
        }
        rows
    }
    fn variables(&self) -> Vec<String> {
        let t = &self.handle.table;
        let Some(variables) = t.variables else { return vec![] };
        // SAFETY: the table is whole; the sink lives until the call returns.
        let text = written_text(self.library(), |write, sink| unsafe { variables(t.instance, write, sink) });
        text.unwrap_or_default().split_terminator('\0').map(str::to_string).collect()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        let t = &self.handle.table;
        let ids = self.variables();
        let Some(variable) = t.variable.filter(|_| ids.iter().any(|v| v == id)) else {
            return Err(Error::not_found(format!("no variable `{id}`; the model has: {}", ids.join(", "))));
        };
        let mut code = CarafeAttr::EMPTY.tensor;
        set_text("");
        // SAFETY: the table is whole; what comes back is copied before the next call.
        unsafe {
            match variable(t.instance, CarafeStr::of(id), &mut code) {
                CARAFE_NOT_FOUND => Ok(None),
                status => {
                    report(status, self.library().name())?;
                    tensor_of(&code).map(Some)
                }
            }
        }
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        let t = &self.handle.table;
        let Some(set) = t.set_variable else { return Err(Error::not_found(format!("no variable `{id}`"))) };
        let mut arena = Arena::default();
        set_text("");
        // SAFETY: the table is whole; the tensor lives until the call returns.
        let status = unsafe { set(t.instance, CarafeStr::of(id), &tensor_code(&value, &mut arena)) };
        report(status, self.library().name())
    }
    fn reset_variables(&mut self) {
        if let Some(reset) = self.handle.table.reset {
            // SAFETY: the table is whole.
            unsafe { reset(self.handle.table.instance) }
        }
    }
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
