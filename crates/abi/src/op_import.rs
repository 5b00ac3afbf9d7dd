//! An operation behind a table, as an operation of this side.

use crate::convert::{Arena, attr_of};
use crate::convert::{attrs_code, attrs_of, fact_code, kind_of};
use crate::eval_export::EvalBridge;
use crate::infer_export::InferBridge;
use crate::library::Library;
use crate::tables::*;
use crate::text::{c_text, declared, forever, opt_c_text};
use carafe_graph::{
    Attr, AttrInfo, AttrKind, AttrMap, AttrValue, Elementwise, Error, EvalCx, Fact, InferCx, Op, OpDecl, OpFactory,
    OpInfo, PortInfo, Result, TensorAttr,
};
use carafe_tensor::{ElementType, PartialShape};
use std::any::Any;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// An operation class of another side.
struct Class {
    table: CarafeOp,
    info: &'static OpInfo,
    defaults: AttrMap,
    library: Arc<Library>,
}

// SAFETY: the table holds function pointers and pointers into the library, which `library` keeps mapped; the contract
// lets its functions be called by several threads.
unsafe impl Send for Class {}
// SAFETY: as above.
unsafe impl Sync for Class {}

/// A pointer of a library that its own functions are called with, and the library kept mapped with it.
pub(crate) struct User {
    pointer: *mut c_void,
    library: Arc<Library>,
}

// SAFETY: the contract lets a library's functions be called with its pointers on any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(crate) fn new(pointer: *mut c_void, library: &Arc<Library>) -> User {
        User { pointer, library: library.clone() }
    }
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
    pub(crate) fn library(&self) -> &Library {
        &self.library
    }
}

/// What `create` made for one node.
struct Instance {
    pointer: *mut c_void,
    class: Arc<Class>,
}

// SAFETY: the contract lets an instance be used by several threads at once and released by any.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        if let (Some(release), Some(_)) = (self.class.table.release, self.class.table.create) {
            // SAFETY: `create` made it, and this is the last handle.
            self.class.library.notify("release", || unsafe { release(self.pointer) });
        }
    }
}

/// A node's operation whose code is in another library.
#[derive(Clone)]
struct ForeignOp {
    instance: Arc<Instance>,
    attrs: Vec<(Cow<'static, str>, AttrValue)>,
}

impl std::fmt::Debug for ForeignOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.info().name, self.instance.class.library.name())
    }
}

/// A factory for the operation of a table.
///
/// # Safety
/// The table must be whole, as `CarafeRegistrarFns::add_op` asks, and live as long as the library.
pub unsafe fn import_op(table: CarafeOp, library: &Arc<Library>) -> Result<OpFactory> {
    // SAFETY: the caller promises zero-terminated texts, or null.
    let name = unsafe { c_text(table.name, "the name of an operation")? };
    // SAFETY: passed on from the caller.
    let (info, defaults) =
        unsafe { declaration(&table, name, library).map_err(|e| e.at(format!("operation `{name}`")))? };
    let class = Arc::new(Class { table, info, defaults, library: library.clone() });
    Ok(OpFactory::from_fn(info, move |attrs| create(&class, attrs)))
}

/// # Safety
/// As for `import_op`.
unsafe fn declaration(table: &CarafeOp, name: &str, library: &Library) -> Result<(&'static OpInfo, AttrMap)> {
    if name.is_empty() || table.infer.is_none() {
        return Err(Error::invalid("needs a name and an `infer` function"));
    }
    // SAFETY: the caller promises texts and lists as the table says, here and below.
    let opset = unsafe { opt_c_text(table.opset, "the opset")? }.filter(|s| !s.is_empty()).unwrap_or("extension");
    // SAFETY: as above.
    let doc = unsafe { opt_c_text(table.doc, "the documentation")? }.unwrap_or("");
    // SAFETY: as above.
    let inputs = unsafe { ports(table.inputs, table.n_inputs, "inputs")? };
    // SAFETY: as above.
    let outputs = unsafe { ports(table.outputs, table.n_outputs, "outputs")? };
    // SAFETY: as above.
    let moves = unsafe { declared(table.moves, table.n_moves, "moved inputs")? }.to_vec();
    // SAFETY: as above.
    let shape_inputs =
        unsafe { declared(table.shape_inputs, table.n_shape_inputs, "inputs that decide shapes")? }.to_vec();
    // SAFETY: as above.
    let rows = unsafe { declared(table.rows, table.n_rows, "inputs of rows")? }.to_vec();
    // SAFETY: as above.
    let list = unsafe { declared(table.attrs, table.n_attrs, "attributes")? };
    // SAFETY: as above.
    let marks = unsafe { declared(table.internal_attrs, table.n_internal_attrs, "internal attributes")? };
    let mut internal = vec![false; list.len()];
    for &i in marks {
        let n = list.len();
        let outside = || Error::invalid(format!("attribute {i} is marked internal, there are {n}"));
        *internal.get_mut(i).ok_or_else(outside)? = true;
    }
    let mut attrs = Vec::new();
    let mut defaults = AttrMap::new();
    for (i, a) in list.iter().enumerate() {
        // SAFETY: as above.
        let attr_name = unsafe { c_text(a.name, "the name of an attribute")? };
        // SAFETY: as above.
        let doc = unsafe { opt_c_text(a.doc, "the documentation of an attribute")? }.unwrap_or("");
        let kind = kind_of(a.kind)?;
        let is_internal = internal[i];
        if is_internal && a.required != 0 {
            return Err(Error::invalid(format!(
                "attribute `{attr_name}` is internal and required, but a node that is read from a file does not have it"
            )));
        }
        let mut default = None;
        // SAFETY: as above.
        if let Some(value) = unsafe { a.default_value.as_ref() } {
            // SAFETY: as above.
            let (_, value) = unsafe { attr_of(value)? };
            let value = typed(kind, &value).map_err(|e| Error::invalid(format!("default of `{attr_name}`: {e}")))?;
            default = Some(value.to_string());
            defaults.set(attr_name, value);
        } else if a.required == 0 {
            default = Some("none".to_string());
        }
        attrs.push((attr_name.to_string(), kind, default, doc.to_string(), is_internal));
    }
    let flag = |bit: u32| table.flags & bit != 0;
    let key = format!(
        "{}|{name}|{opset}|{doc}|{inputs:?}|{outputs:?}|{attrs:?}|{moves:?}|{shape_inputs:?}|{rows:?}|{}|{}",
        library.path().display(),
        table.flags,
        table.eval.is_some()
    );
    let info = intern(key, || OpInfo {
        name: forever(name),
        xml_name: forever(name),
        opset: forever(opset),
        inputs: leak_ports(&inputs),
        outputs: leak_ports(&outputs),
        attrs: Box::leak(
            attrs
                .iter()
                .map(|(name, kind, default, doc, internal)| AttrInfo {
                    name: forever(name),
                    kind: *kind,
                    default: default.as_deref().map(forever),
                    doc: forever(doc),
                    internal: *internal,
                })
                .collect(),
        ),
        doc: forever(doc),
        moves: Box::leak(moves.clone().into_boxed_slice()),
        shape_inputs: Box::leak(shape_inputs.clone().into_boxed_slice()),
        rows: Box::leak(rows.clone().into_boxed_slice()),
        elementwise: match () {
            () if flag(CARAFE_OP_BROADCASTS) => Elementwise::All,
            () if flag(CARAFE_OP_ELEMENTWISE) => Elementwise::First,
            () => Elementwise::No,
        },
        keeps_shape: flag(CARAFE_OP_KEEPS_SHAPE),
        keeps_zero: flag(CARAFE_OP_KEEPS_ZERO),
        idempotent: flag(CARAFE_OP_IDEMPOTENT),
        involution: flag(CARAFE_OP_INVOLUTION),
        quantizes: flag(CARAFE_OP_QUANTIZES),
        shape_only: flag(CARAFE_OP_SHAPE_ONLY),
        heavy: flag(CARAFE_OP_HEAVY),
        commutative: flag(CARAFE_OP_COMMUTATIVE),
        random: flag(CARAFE_OP_RANDOM),
        stateful: flag(CARAFE_OP_STATEFUL),
        sink: flag(CARAFE_OP_SINK),
        any_attrs: flag(CARAFE_OP_ANY_ATTRS),
        no_eval: table.eval.is_none(),
        ..OpInfo::PLAIN
    });
    Ok((info, defaults))
}

// Declarations live for ever; the same one, loaded again, is not made twice.
fn intern(key: String, make: impl FnOnce() -> OpInfo) -> &'static OpInfo {
    static KNOWN: Mutex<Option<HashMap<String, &'static OpInfo>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    known.get_or_insert_default().entry(key).or_insert_with(|| Box::leak(Box::new(make())))
}

type Ports = Vec<(String, bool, bool)>;

/// # Safety
/// The list and its texts must be there.
unsafe fn ports(p: *const CarafePort, n: usize, what: &str) -> Result<Ports> {
    // SAFETY: passed on from the caller.
    let list = unsafe { declared(p, n, what)? };
    let mut out: Ports = Vec::new();
    for (i, port) in list.iter().enumerate() {
        // SAFETY: passed on from the caller.
        let name = unsafe { opt_c_text(port.name, "the name of a port")? };
        if port.variadic != 0 && i + 1 < n {
            return Err(Error::invalid(format!("{what}: only the last port can stand for several")));
        }
        out.push((name.unwrap_or("").to_string(), port.optional != 0, port.variadic != 0));
    }
    Ok(out)
}

fn leak_ports(ports: &Ports) -> &'static [PortInfo] {
    let list = ports.iter().map(|(name, optional, variadic)| PortInfo {
        name: forever(name),
        optional: *optional,
        variadic: *variadic,
    });
    Box::leak(list.collect())
}

/// A value in the form its declared kind has.
pub(crate) fn typed(kind: AttrKind, value: &AttrValue) -> Result<AttrValue, String> {
    fn read<T: Attr>(value: &AttrValue) -> Result<AttrValue, String> {
        T::read(value)?.write().ok_or_else(|| "has no value".to_string())
    }
    match kind {
        AttrKind::Bool => read::<bool>(value),
        AttrKind::Int => read::<i64>(value),
        AttrKind::Float => read::<f64>(value),
        AttrKind::Str | AttrKind::Enum(_) => read::<String>(value),
        AttrKind::Ints => read::<Vec<i64>>(value),
        AttrKind::Floats => read::<Vec<f64>>(value),
        AttrKind::Strs => read::<Vec<String>>(value),
        AttrKind::Type => read::<ElementType>(value),
        AttrKind::Types => read::<Vec<ElementType>>(value),
        AttrKind::Shape => read::<PartialShape>(value),
        AttrKind::Tensor => read::<TensorAttr>(value),
        AttrKind::Body => Err("a sub-graph stays on its side".to_string()),
    }
}

fn create(class: &Arc<Class>, given: &AttrMap) -> Result<Arc<dyn Op>> {
    let mut all: Vec<(String, AttrValue)> = Vec::new();
    for info in class.info.attrs {
        let value = match given.get(info.name).or_else(|| class.defaults.get(info.name)) {
            Some(v) => typed(info.kind, v).map_err(|e| Error::invalid(format!("attribute `{}`: {e}", info.name)))?,
            None if info.default.is_none() => {
                let names: Vec<&str> = given.iter().map(|(n, _)| n).collect();
                let found = if names.is_empty() { "nothing".into() } else { format!("`{}`", names.join("`, `")) };
                return Err(Error::invalid(format!("attribute `{}` is required; found {found}", info.name)));
            }
            None => continue,
        };
        all.push((info.name.to_string(), value));
    }
    if class.info.any_attrs {
        let declared: HashSet<&str> = class.info.attrs.iter().map(|d| d.name).collect();
        let others = given.iter().filter(|(n, _)| !declared.contains(n));
        all.extend(others.map(|(name, value)| (name.to_string(), value.clone())));
    }
    let mut all: AttrMap = all.into_iter().collect();
    let pointer = match class.table.create {
        None => class.table.user,
        Some(create) => {
            let mut arena = Arena::default();
            let codes = attrs_code(all.iter(), &mut arena)?;
            let mut pointer = std::ptr::null_mut();
            // SAFETY: the table is whole; the attributes live until the call returns.
            class.library.call("create", || unsafe { create(class.table.user, codes, &mut pointer) })?;
            pointer
        }
    };
    let instance = Arc::new(Instance { pointer, class: class.clone() });
    if let Some(list) = class.table.instance_attrs {
        let mut codes = CarafeAttrs::EMPTY;
        // SAFETY: the instance was just made; what comes back lives as long as it.
        class.library.call("instance_attrs", || unsafe { list(pointer, &mut codes) })?;
        // SAFETY: as above.
        all = unsafe { attrs_of(codes).map_err(|e| class.library.blame(e))? };
    }
    let attrs = all.iter().map(|(n, v)| (Cow::Owned(n.to_string()), v.clone())).collect();
    Ok(Arc::new(ForeignOp { instance, attrs }))
}

impl Op for ForeignOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let class = &self.instance.class;
        let infer = class.table.infer.ok_or_else(|| Error::invalid("has no `infer`"))?;
        let bridge = InferBridge::new(cx);
        // SAFETY: the instance is alive, the bridge lives until the call returns.
        class.library.call("infer", || unsafe { infer(self.instance.pointer, bridge.pointer()) })?;
        bridge.finish().map_err(|e| class.library.blame(e))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let class = &self.instance.class;
        let Some(eval) = class.table.eval else {
            return Err(Error::unsupported(format!(
                "{} of `{}` has no evaluation",
                class.info.name,
                class.library.name()
            )));
        };
        let bridge = EvalBridge::new(cx, Some(class.library.clone()));
        // SAFETY: the instance is alive, the bridge lives until the call returns.
        class.library.call("eval", || unsafe { eval(self.instance.pointer, bridge.pointer()) })?;
        bridge.finish().map_err(|e| class.library.blame(e))
    }
    fn has_eval(&self) -> bool {
        let (table, library) = (&self.instance.class.table, &self.instance.class.library);
        let mut has = table.eval.is_some();
        if let Some(evaluates) = table.evaluates.filter(|_| has) {
            // SAFETY: the instance is alive.
            library.notify("evaluates", || has = unsafe { evaluates(self.instance.pointer) } != 0);
        }
        has
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        let class = &self.instance.class;
        let Some(macs) = class.table.macs else { return Some(0) };
        let mut arena = Arena::default();
        let mut code = |facts: &[&Fact]| -> Vec<CarafeFact> {
            facts.iter().map(|f| fact_code(f.ty, &f.shape, &mut arena)).collect()
        };
        let (inputs, outputs, mut n) = (code(inputs), code(outputs), 0);
        // SAFETY: the instance is alive; the lists live until the call returns.
        let call = || unsafe {
            macs(self.instance.pointer, inputs.as_ptr(), inputs.len(), outputs.as_ptr(), outputs.len(), &mut n)
        };
        class.library.call("macs", call).ok().map(|()| n)
    }
}

impl OpDecl for ForeignOp {
    fn info(&self) -> &'static OpInfo {
        self.instance.class.info
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.attrs.clone()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        let other = other.get::<ForeignOp>();
        other.is_some_and(|o| std::ptr::eq(self.info(), o.info()) && self.attrs == o.attrs)
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}
