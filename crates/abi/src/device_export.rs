//! A device of this side as a table for the other. Models arrive as IR text with their weights where they lie; an operation
//! that only the engine knows becomes a stand-in that asks the engine to evaluate it.

use crate::convert::{Arena, fact_code, tensor_code, tensor_of};
use crate::crossing::{put, writable};
use crate::eval_export::EvalBridge;
use crate::foreign::foreign_tensor;
use crate::graph_import::Graph;
use crate::host::{adopt, end, tell};
use crate::kernel_import::{Maker, import_kernel};
use crate::op_export::{c_leak, from_host};
use crate::registrar::{table, up_to};
use crate::status::guard_into;
use crate::tables::*;
use crate::text::{items, slice, text};
use carafe_device::{
    CancelFlag, CompiledModel, Device, InferRequest, NodeStatus, Port, Properties, PropertyInfo, PropertyKind,
};
use carafe_graph::{
    AttrMap, AttrValue, Error, EvalCx, Fact, InferCx, Model, NodeId, Op, OpDecl, OpFactory, OpInfo, PortInfo, Registry,
    Result, Value,
};
use carafe_tensor::{PartialShape, SharedBytes, Tensor};
use std::any::Any;
use std::borrow::Cow;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, OnceLock};

/// Fills in the table of a plugin library's `CreatePluginEngine`. `registry` holds the operations that this library was
/// built with.
///
/// # Safety
/// Both pointers must be those that `CreatePluginEngine` was called with.
pub unsafe fn create_plugin_engine(
    host: *const CarafeHost,
    out: *mut CarafeDevice,
    make: impl FnOnce() -> Result<(&'static str, Arc<dyn Device>, Registry)>,
) -> CarafeStatus {
    if host.is_null() || out.is_null() {
        return CARAFE_USAGE;
    }
    // SAFETY: passed on from the caller.
    unsafe { adopt(host) };
    crate::export::quiet_panics();
    guard_into(
        || {
            let (name, device, registry) = make()?;
            let table = device_table(name, device, registry);
            // SAFETY: the caller gives a place to write to; an older engine takes no more than its size says.
            unsafe {
                let size = (*out).size.min(size_of::<CarafeDevice>());
                std::ptr::copy_nonoverlapping((&raw const table).cast::<u8>(), out.cast::<u8>(), size);
                (*out).size = size;
            }
            Ok(())
        },
        tell,
    )
}

struct Exported {
    device: Arc<dyn Device>,
    registry: Registry,
}

fn device_table(name: &str, device: Arc<dyn Device>, registry: Registry) -> CarafeDevice {
    let rows: &[CarafeProperty] = device.properties().iter().map(property_row).collect::<Vec<_>>().leak();
    let version = device.version();
    CarafeDevice {
        size: size_of::<CarafeDevice>(),
        abi: CARAFE_ABI_MAJOR,
        n_properties: rows.len() as u32,
        name: c_leak(name),
        version: c_leak(&version.build),
        description: c_leak(&version.description),
        properties: rows.as_ptr(),
        instance: Box::into_raw(Box::new(Exported { device, registry })).cast(),
        metric: Some(metric),
        query: Some(query),
        compile: Some(compile),
        import: Some(import),
        release: Some(release::<Exported>),
        set_kernels: Some(set_kernels),
    }
}

fn property_row(p: &PropertyInfo) -> CarafeProperty {
    let (kind, min, max) = match p.kind {
        PropertyKind::Text => (0, 0, 0),
        PropertyKind::Bool => (1, 0, 0),
        PropertyKind::Int { min, max } => (2, min, max),
        PropertyKind::Enum(_) => (3, 0, 0),
    };
    let words: &[&str] = if let PropertyKind::Enum(words) = p.kind { words } else { &[] };
    let words: &[*const c_char] = words.iter().map(|w| c_leak(w)).collect::<Vec<_>>().leak();
    CarafeProperty {
        name: c_leak(p.name),
        kind,
        writable: u32::from(p.mutability == carafe_device::Mutability::ReadWrite),
        min,
        max,
        words: words.as_ptr(),
        n_words: words.len(),
        default_value: c_leak(p.default),
        doc: c_leak(p.doc),
    }
}

unsafe extern "C" fn release<T>(instance: *mut c_void) {
    // SAFETY: this side made the box, and the contract gives it back once.
    end("the end of an object of the device", || drop(unsafe { Box::from_raw(instance.cast::<T>()) }));
}

/// # Safety
/// `instance` must be what this side made as a `T`, and alive.
unsafe fn at<'a, T>(instance: *mut c_void) -> &'a T {
    // SAFETY: the caller promises.
    unsafe { &*instance.cast::<T>() }
}

/// # Safety
/// The sink must be good for `write`.
unsafe fn write_all(write: CarafeWrite, sink: *mut c_void, bytes: &[u8]) -> Result<()> {
    // SAFETY: passed on from the caller.
    from_host(unsafe { write(sink, bytes.as_ptr().cast(), bytes.len()) })
}

/// # Safety
/// The list must hold whole texts.
unsafe fn properties_of(list: CarafeProperties) -> Result<Properties> {
    let mut all = Properties::new();
    // SAFETY: passed on from the caller.
    unsafe {
        for s in items(list.list, list.n, "properties")? {
            all.set(text(s.name, "the name of a property")?, text(s.value, "the value of a property")?);
        }
    }
    Ok(all)
}

unsafe extern "C" fn set_kernels(instance: *mut c_void, kernels: *const CarafeKernel, n: usize) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: the contract passes the device that this side made, and whole tables that live for ever.
            unsafe {
                let mut list = Vec::with_capacity(n);
                for i in 0..n {
                    // An engine may have longer tables than this side.
                    let size = (*kernels).size;
                    let at = kernels.cast::<u8>().add(i * size).cast::<CarafeKernel>();
                    let kernel = table(at, up_to!(CarafeKernel, release), "the table of a kernel")?;
                    list.push(import_kernel(kernel, Maker::Engine)?);
                }
                at::<Exported>(instance).device.set_kernels(&list);
            }
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn metric(
    instance: *mut c_void,
    name: CarafeStr,
    write: CarafeWrite,
    sink: *mut c_void,
) -> CarafeStatus {
    guard_into(
        // SAFETY: the contract passes what `device_table` made, a text and a good sink; so in every function below.
        || unsafe {
            let value = at::<Exported>(instance).device.metric(text(name, "the name of a property")?)?;
            write_all(write, sink, value.as_bytes())
        },
        tell,
    )
}

/// A model that the engine keeps for us.
struct Kept(*mut CarafeGraph);

// SAFETY: a retained graph is only used behind a lock, and may be released by any thread.
unsafe impl Send for Kept {}
// SAFETY: as above; shared uses only keep it alive.
unsafe impl Sync for Kept {}

impl Kept {
    fn new(g: *mut CarafeGraph) -> Result<Kept> {
        if g.is_null() {
            from_host(CARAFE_INVALID)?;
        }
        Ok(Kept(g))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: `retain` or `scratch` gave it, and it is given back once.
        unsafe { ((*(*self.0).fns).release)(self.0) }
    }
}

/// Weights that lie on the engine's side.
struct Part {
    data: *const u8,
    len: usize,
    _model: Arc<Kept>,
}

// SAFETY: the bytes are only read, and the kept model holds them.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `model_of` checked the pointer; the kept model holds the bytes.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// The model on this side: weights are not copied.
///
/// # Safety
/// `g` must be a live graph.
unsafe fn model_of(g: *mut CarafeGraph, registry: &Registry) -> Result<Model> {
    // SAFETY: passed on from the caller; so below. What comes from the retained graph lives as long as it.
    unsafe {
        let kept = Arc::new(Kept::new(((*(*g).fns).retain)(g))?);
        let fns = &*(*kept.0).fns;
        let (mut xml, mut buffers, mut n) = (CarafeStr::EMPTY, std::ptr::null(), 0);
        from_host((fns.ir)(kept.0, &mut xml, &mut buffers, &mut n))?;
        let mut parts = Vec::new();
        for b in items::<CarafeBuffer>(buffers, n, "weights")? {
            let bytes = slice(b.data.cast::<u8>(), b.bytes, "bytes of the weights")?;
            let part = Part { data: bytes.as_ptr(), len: bytes.len(), _model: kept.clone() };
            parts.push((b.offset, SharedBytes::from_owner(Arc::new(part))));
        }
        let options = carafe_ir::ReadOptions { keep_unknown: true, old_api: false, ..Default::default() };
        let registry = with_engine_ops(registry, g)?;
        carafe_ir::read_parts(text(xml, "the text of the model")?, parts, &registry, &options)
    }
}

/// Our operations, and stand-ins for those that only the engine has.
///
/// # Safety
/// `g` must be a live graph with the engine's operations at hand.
unsafe fn with_engine_ops(own: &Registry, g: *mut CarafeGraph) -> Result<Registry> {
    let mut all = own.clone();
    let (mut names, mut n) = (std::ptr::null(), 0);
    // SAFETY: passed on from the caller; what comes back is copied at once.
    let (scratch, names) = unsafe {
        from_host(((*(*g).fns).ops)(g, &mut names, &mut n))?;
        let names: Vec<&str> =
            items(names, n, "operations")?.iter().map(|s| text(*s, "an operation")).collect::<Result<_>>()?;
        (Kept::new(((*(*g).fns).scratch)(g))?, names)
    };
    let scratch = Arc::new(Mutex::new(scratch));
    // SAFETY: passed on from the caller.
    let without = unsafe { without_evaluation(g)? };
    for name in names {
        let Some((opset, kind)) = name.split_once("::") else { continue };
        if own.find(kind, opset).is_some() {
            continue;
        }
        let (info, scratch) = (engine_info(opset, kind), scratch.clone());
        let evaluates = !without.iter().any(|op| op == name);
        all.add(OpFactory::from_fn(info, move |attrs| {
            Ok(Arc::new(EngineOp { info, attrs: attrs.clone(), scratch: scratch.clone(), evaluates }))
        }));
    }
    Ok(all)
}

/// Operations of a graph that the engine cannot evaluate, as `opset::Type`.
///
/// # Safety
/// `g` must be a live graph.
unsafe fn without_evaluation(g: *mut CarafeGraph) -> Result<Vec<String>> {
    // SAFETY: passed on from the caller; the field is looked at only where the table of the engine has it.
    unsafe {
        let fns = (*g).fns;
        if (*fns).size < up_to!(CarafeGraphFns, can_evaluate) {
            return Ok(vec![]);
        }
        let graph = Graph::new(g);
        let mut found = vec![];
        for id in graph.nodes()? {
            if ((*fns).can_evaluate)(g, id.0) == CARAFE_UNSUPPORTED {
                let node = graph.node(id)?;
                found.push(format!("{}::{}", node.opset, node.op_type));
            }
        }
        Ok(found)
    }
}

// Declarations live for ever; each is made once.
fn engine_info(opset: &str, kind: &str) -> &'static OpInfo {
    static KNOWN: Mutex<Vec<&'static OpInfo>> = Mutex::new(Vec::new());
    const ANY: &[PortInfo] = &[PortInfo { name: "", optional: false, variadic: true }];
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(info) = known.iter().find(|i| i.opset == opset && i.name == kind) {
        return info;
    }
    let leak = |s: &str| -> &'static str { Box::leak(s.to_string().into_boxed_str()) };
    let info: &'static OpInfo = Box::leak(Box::new(OpInfo {
        name: leak(kind),
        xml_name: leak(kind),
        opset: leak(opset),
        inputs: ANY,
        outputs: ANY,
        // Whether it may be folded is the engine's to say, and was said before the model came here.
        random: true,
        ..OpInfo::PLAIN
    }));
    known.push(info);
    info
}

/// An operation that the engine infers and evaluates.
#[derive(Clone)]
struct EngineOp {
    info: &'static OpInfo,
    attrs: AttrMap,
    scratch: Arc<Mutex<Kept>>,
    evaluates: bool,
}

impl std::fmt::Debug for EngineOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of the engine", self.info.name)
    }
}

impl EngineOp {
    // Puts the operation into the scratch model with inputs of these facts, lets `f` use it, and takes it out again.
    fn with_node<T>(
        &self,
        facts: &[Fact],
        f: impl FnOnce(&Graph<'_>, *mut CarafeGraph, NodeId) -> Result<T>,
    ) -> Result<T> {
        let guard = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the lock makes this the only user of the graph.
        let mut graph = unsafe { Graph::new(guard.0) };
        let mut inputs: Vec<NodeId> = Vec::new();
        let result = (|| {
            for fact in facts {
                let mut attrs = AttrMap::new();
                attrs.set("shape", AttrValue::Shape(fact.shape.clone()));
                attrs.set("element_type", AttrValue::Type(fact.ty));
                inputs.push(match fact.tensor() {
                    Some(t) => graph.add_constant("input", t)?.node,
                    None => graph.add("input", "opset1::Parameter", &attrs, &[])?,
                });
            }
            let values: Vec<Value> = inputs.iter().map(|id| (*id).into()).collect();
            let op = format!("{}::{}", self.info.opset, self.info.xml_name);
            let id = graph.add("node", &op, &self.attrs, &values)?;
            let result = f(&graph, guard.0, id);
            graph.remove(id)?;
            result
        })();
        for id in inputs {
            graph.remove(id)?;
        }
        result
    }
}

impl Op for EngineOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let facts: Vec<Fact> = (0..cx.n_inputs()).map(|i| cx.fact(i).clone()).collect();
        let outputs = self.with_node(&facts, |graph, _, node| {
            let n = graph.node(node)?.n_outputs;
            (0..n).map(|port| graph.fact(Value { node, port })).collect::<Result<Vec<_>>>()
        })?;
        for (i, fact) in outputs.into_iter().enumerate() {
            cx.set_fact(i, fact);
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let facts: Vec<Fact> = (0..cx.n_inputs()).map(|i| Fact::new(cx.ty(i), PartialShape::of(cx.shape(i)))).collect();
        let mut arena = Arena::default();
        let inputs: Vec<CarafeTensor> = (0..cx.n_inputs()).map(|i| tensor_code(cx.input(i), &mut arena)).collect();
        let bridge = EvalBridge::new(cx, None);
        let out = bridge.pointer();
        self.with_node(&facts, |_, g, node| {
            // SAFETY: the graph is locked; inputs and bridge live until the call returns.
            from_host(unsafe { ((*(*g).fns).evaluate)(g, node.0, inputs.as_ptr(), inputs.len(), out) })
        })?;
        bridge.finish()
    }
    fn has_eval(&self) -> bool {
        self.evaluates
    }
}

impl OpDecl for EngineOp {
    fn info(&self) -> &'static OpInfo {
        self.info
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.attrs.iter().map(|(n, v)| (Cow::Owned(n.to_string()), v.clone())).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        other.get::<EngineOp>().is_some_and(|o| std::ptr::eq(o.info, self.info) && o.attrs == self.attrs)
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}

unsafe extern "C" fn query(
    instance: *mut c_void,
    g: *mut CarafeGraph,
    properties: CarafeProperties,
    answer: CarafeAnswer,
    sink: *mut c_void,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let own = at::<Exported>(instance);
            let model = model_of(g, &own.registry)?;
            let result = own.device.query(&model, &properties_of(properties)?)?;
            let graph = Graph::new(g);
            for id in graph.nodes()? {
                let name = graph.node(id)?.name;
                let refused = result.unsupported.iter().find(|u| u.name == name);
                let reason = match refused {
                    Some(u) if u.reason.is_empty() => "not supported",
                    Some(u) => &u.reason,
                    None if result.supported.contains(&name) => "",
                    None => "the device did not answer for it",
                };
                from_host(answer(sink, id.0, CarafeStr::of(reason)))?;
            }
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn compile(
    instance: *mut c_void,
    g: *mut CarafeGraph,
    properties: CarafeProperties,
    out: *mut CarafeCompiled,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let own = at::<Exported>(instance);
            let model = model_of(g, &own.registry)?;
            let compiled = own.device.compile(&model, &properties_of(properties)?)?;
            fill_compiled(compiled, out)
        },
        tell,
    )
}

unsafe extern "C" fn import(
    instance: *mut c_void,
    ops: *mut CarafeGraph,
    data: *const c_void,
    bytes: usize,
    properties: CarafeProperties,
    out: *mut CarafeCompiled,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let own = at::<Exported>(instance);
            let blob = SharedBytes::from_vec(slice(data.cast::<u8>(), bytes, "the exported model")?.to_vec());
            let registry = with_engine_ops(&own.registry, ops)?;
            let compiled = own.device.import(blob, &registry, &properties_of(properties)?)?;
            fill_compiled(compiled, out)
        },
        tell,
    )
}

struct Compiled {
    compiled: Arc<dyn CompiledModel>,
    inputs: Vec<CarafeModelPort>,
    outputs: Vec<CarafeModelPort>,
    _arena: Arena,
}

fn port_code(p: &Port, arena: &mut Arena) -> CarafeModelPort {
    let names: Vec<CarafeStr> = p.names.iter().map(|n| arena.text(n)).collect();
    let n_names = names.len();
    CarafeModelPort {
        name: arena.text(&p.name),
        names: arena.keep(names),
        n_names,
        fact: fact_code(p.ty, &p.shape, arena),
    }
}

/// # Safety
/// `out` must be the place that the engine gave.
unsafe fn fill_compiled(compiled: Arc<dyn CompiledModel>, out: *mut CarafeCompiled) -> Result<()> {
    let mut arena = Arena::default();
    let inputs: Vec<_> = compiled.inputs().iter().map(|p| port_code(p, &mut arena)).collect();
    let outputs: Vec<_> = compiled.outputs().iter().map(|p| port_code(p, &mut arena)).collect();
    let made = Box::new(Compiled { compiled, inputs, outputs, _arena: arena });
    let table = CarafeCompiled {
        size: size_of::<CarafeCompiled>(),
        abi: CARAFE_ABI_MAJOR,
        reserved: 0,
        inputs: made.inputs.as_ptr(),
        n_inputs: made.inputs.len(),
        outputs: made.outputs.as_ptr(),
        n_outputs: made.outputs.len(),
        instance: Box::into_raw(made).cast(),
        property: Some(property),
        runtime_model: Some(runtime_model),
        export_to: Some(export_to),
        create_request: Some(create_request),
        release: Some(release::<Compiled>),
    };
    // SAFETY: the caller gives a place to write to; an older engine takes no more than its size says.
    unsafe {
        let size = (*out).size.min(size_of::<CarafeCompiled>());
        std::ptr::copy_nonoverlapping((&raw const table).cast::<u8>(), out.cast::<u8>(), size);
        (*out).size = size;
    }
    Ok(())
}

unsafe extern "C" fn property(
    instance: *mut c_void,
    name: CarafeStr,
    write: CarafeWrite,
    sink: *mut c_void,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let value = at::<Compiled>(instance).compiled.property(text(name, "the name of a property")?)?;
            write_all(write, sink, value.as_bytes())
        },
        tell,
    )
}

unsafe extern "C" fn runtime_model(instance: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let mut model = at::<Compiled>(instance).compiled.runtime_model();
            model.name = format!("{} (running)", model.name);
            write_all(write, sink, crate::graph_ir::text_without_weights(model)?.as_bytes())
        },
        tell,
    )
}

unsafe extern "C" fn export_to(instance: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let mut bytes = Vec::new();
            at::<Compiled>(instance).compiled.export(&mut bytes)?;
            write_all(write, sink, &bytes)
        },
        tell,
    )
}

struct Request {
    request: Mutex<Box<dyn InferRequest>>,
    cancel: CancelFlag,
    /// What `variable` handed out last.
    shown: Mutex<(Option<Tensor>, Arena)>,
}

unsafe extern "C" fn create_request(instance: *mut c_void, out: *mut CarafeRequest) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let request = at::<Compiled>(instance).compiled.clone().create_request();
            let cancel = request.cancel_flag();
            let made = Box::new(Request { request: Mutex::new(request), cancel, shown: Mutex::default() });
            let table = CarafeRequest {
                size: size_of::<CarafeRequest>(),
                abi: CARAFE_ABI_MAJOR,
                reserved: 0,
                instance: Box::into_raw(made).cast(),
                set_input: Some(set_input),
                infer: Some(infer),
                output: Some(output),
                cancel: Some(cancel_request),
                profile: Some(profile),
                variables: Some(variables),
                variable: Some(variable),
                set_variable: Some(set_variable),
                reset: Some(reset),
                release: Some(release::<Request>),
                stages: Some(stages),
                run_stage: Some(run_stage),
            };
            let size = (*out).size.min(size_of::<CarafeRequest>());
            std::ptr::copy_nonoverlapping((&raw const table).cast::<u8>(), out.cast::<u8>(), size);
            (*out).size = size;
            Ok(())
        },
        tell,
    )
}

impl Request {
    fn lock(&self) -> std::sync::MutexGuard<'_, Box<dyn InferRequest>> {
        self.request.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Memory of the engine on its way into a request. It is given back only when the request took it: when `set_input` fails,
/// it is still the engine's.
struct Gift {
    owner: *mut c_void,
    give_back: CarafeRelease,
    taken: Arc<OnceLock<()>>,
}

unsafe extern "C" fn give_on(gift: *mut c_void) {
    // SAFETY: `set_input` made the box, and its tensor gives it back once.
    let gift = unsafe { Box::from_raw(gift.cast::<Gift>()) };
    if let (Some(give_back), Some(())) = (gift.give_back, gift.taken.get()) {
        // SAFETY: given back once, with the owner that came with it.
        unsafe { give_back(gift.owner) }
    }
}

unsafe extern "C" fn set_input(
    instance: *mut c_void,
    index: usize,
    tensor: *const CarafeTensor,
    owner: *mut c_void,
    give_back: CarafeRelease,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`; the memory stays until `give_back(owner)`, which is not ours to call when this fails.
        || unsafe {
            let held = Arc::new(OnceLock::new());
            let gift = Box::into_raw(Box::new(Gift { owner, give_back, taken: held.clone() }));
            let tensor = tensor.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"));
            let t = tensor.and_then(|t| foreign_tensor(t, gift.cast(), Some(give_on), None)).inspect_err(|_| {
                drop(Box::from_raw(gift));
            })?;
            at::<Request>(instance).lock().set_input(index, t)?;
            let _ = held.set(());
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn infer(instance: *mut c_void) -> CarafeStatus {
    // SAFETY: as in `metric`.
    guard_into(|| unsafe { at::<Request>(instance).lock().infer() }, tell)
}

unsafe extern "C" fn output(
    instance: *mut c_void,
    index: usize,
    tensor: *mut CarafeTensor,
    owner: *mut *mut c_void,
    give_back: *mut CarafeRelease,
) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`; the box keeps shape and bytes in place until it is given back.
        || unsafe {
            writable(tensor, "a tensor")?;
            writable(owner, "the owner of a tensor")?;
            writable(give_back, "the release of a tensor")?;
            let kept = at::<Request>(instance).lock().output(index)?.clone();
            let mut arena = Arena::default();
            if kept.strings().is_ok() {
                let mut shown = at::<Request>(instance).shown.lock().unwrap_or_else(|e| e.into_inner());
                put(tensor, tensor_code(&kept, &mut arena), "a tensor")?;
                *shown = (Some(kept), arena);
                return Ok(());
            }
            let kept = Box::into_raw(Box::new((kept, arena)));
            let (inner, arena) = &mut *kept;
            put(tensor, tensor_code(inner, arena), "a tensor")?;
            put(owner, kept.cast(), "the owner of a tensor")?;
            put(give_back, Some(release::<(Tensor, Arena)>), "the release of a tensor")
        },
        tell,
    )
}

unsafe extern "C" fn cancel_request(instance: *mut c_void) {
    // SAFETY: as in `metric`.
    end("a cancellation", || unsafe { at::<Request>(instance) }.cancel.set());
}

unsafe extern "C" fn profile(instance: *mut c_void, row: CarafeProfileSink, sink: *mut c_void) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            for p in at::<Request>(instance).lock().profile() {
                let code = CarafeProfile {
                    name: CarafeStr::of(&p.name),
                    op_type: CarafeStr::of(&p.type_name),
                    kernel: CarafeStr::of(&p.kernel),
                    status: match p.status {
                        NodeStatus::NotRun => 0,
                        NodeStatus::OptimizedOut => 1,
                        NodeStatus::Executed => 2,
                    },
                    reserved: 0,
                    real_ns: u64::try_from(p.real_time.as_nanos()).unwrap_or(u64::MAX),
                    cpu_ns: u64::try_from(p.cpu_time.as_nanos()).unwrap_or(u64::MAX),
                };
                from_host(row(sink, &code))?;
            }
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn variables(instance: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let ids: String = at::<Request>(instance).lock().variables().iter().map(|v| format!("{v}\0")).collect();
            write_all(write, sink, ids.as_bytes())
        },
        tell,
    )
}

unsafe extern "C" fn variable(instance: *mut c_void, id: CarafeStr, tensor: *mut CarafeTensor) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let own = at::<Request>(instance);
            let id = text(id, "the id of a variable")?;
            let value = own.lock().variable(id)?;
            let value = value.ok_or_else(|| Error::not_found(format!("variable `{id}` has no value yet")))?;
            let mut shown = own.shown.lock().unwrap_or_else(|e| e.into_inner());
            let mut arena = Arena::default();
            put(tensor, tensor_code(&value, &mut arena), "a tensor")?;
            *shown = (Some(value), arena);
            Ok(())
        },
        tell,
    )
}

unsafe extern "C" fn set_variable(instance: *mut c_void, id: CarafeStr, tensor: *const CarafeTensor) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let value = tensor_of(tensor.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?)?;
            at::<Request>(instance).lock().set_variable(text(id, "the id of a variable")?, value)
        },
        tell,
    )
}

unsafe extern "C" fn reset(instance: *mut c_void) {
    // SAFETY: as in `metric`.
    end("the reset of the variables", || unsafe { at::<Request>(instance) }.lock().reset_variables());
}

unsafe extern "C" fn stages(instance: *mut c_void, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus {
    guard_into(
        // SAFETY: as in `metric`.
        || unsafe {
            let list = at::<Request>(instance).lock().stages();
            let words: String = list.iter().map(|s| format!("{}\0{}\0", s.name, s.executor)).collect();
            write_all(write, sink, words.as_bytes())
        },
        tell,
    )
}

unsafe extern "C" fn run_stage(instance: *mut c_void, stage: usize) -> CarafeStatus {
    guard_into(
        || {
            // SAFETY: as in `metric`.
            let own = unsafe { at::<Request>(instance) };
            // A cancellation of the last run may have come after its end.
            if stage == 0 {
                own.cancel.clear();
            }
            own.lock().run_stage(stage)
        },
        tell,
    )
}
