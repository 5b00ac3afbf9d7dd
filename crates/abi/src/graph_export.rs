//! Offers a `Model` of this side to rewrites and devices of the other.

use crate::convert::{Arena, attrs_code, attrs_of, fact_code, tensor_code, tensor_of};
use crate::graph_ir;
use crate::rule_import::value_code;
use crate::status::guard;
use crate::tables::*;
use crate::text::{items, text};
use carafe_frontend::split_name;
use carafe_graph::{
    AttrMap, Constant, Error, FrameworkNode, Model, NodeId, Op, REPLACEMENT, Registry, Result, ResultOp, RtTree, Value,
};
use carafe_ir::WeightPart;
use std::sync::Arc;

/// The crossing object with what is behind it. `base` stands first, so that a pointer to it is one to the whole.
#[repr(C)]
pub(crate) struct GraphBridge<'a> {
    base: CarafeGraph,
    model: Held<'a>,
    registry: Arc<Registry>,
    /// A graph as decoded: every name is an operation.
    decoded: bool,
    arena: Arena,
    ir: Option<(String, Vec<WeightPart>)>,
}

/// Tells how many outputs a node of a graph as decoded has.
const N_OUTPUTS: &str = "carafe.n_outputs";

enum Held<'a> {
    Rewritten(&'a mut Model),
    Shown(Arc<Model>),
    Own(Box<Model>),
}

static FNS: CarafeGraphFns = CarafeGraphFns {
    size: size_of::<CarafeGraphFns>(),
    nodes,
    parameters,
    results,
    node,
    attrs,
    input,
    fact,
    constant_of,
    users,
    info,
    set_info,
    add,
    add_constant,
    replace,
    set_input,
    set_name,
    remove,
    evaluate,
    ir,
    retain,
    release,
    scratch,
    ops,
    tensor_names,
    model_name: graph_ir::model_name,
    can_evaluate: graph_ir::can_evaluate,
    read_ir: graph_ir::read_ir,
    copy: graph_ir::copy,
    write_text: graph_ir::write_text,
};

impl<'a> GraphBridge<'a> {
    /// For a rewrite.
    pub(crate) fn rewritten(model: &'a mut Model, registry: Arc<Registry>, decoded: bool) -> GraphBridge<'a> {
        GraphBridge { decoded, ..GraphBridge::new(Held::Rewritten(model), registry) }
    }
    /// For a device; it cannot be changed.
    pub(crate) fn shown(model: Arc<Model>, registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Shown(model), registry)
    }
    /// Empty, to be filled.
    pub(crate) fn scratch(registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Own(Box::new(Model::new("scratch"))), registry)
    }
    fn new(model: Held<'_>, registry: Arc<Registry>) -> GraphBridge<'_> {
        GraphBridge {
            base: CarafeGraph { fns: &FNS },
            model,
            registry,
            decoded: false,
            arena: Arena::default(),
            ir: None,
        }
    }
    pub(crate) fn pointer(&mut self) -> *mut CarafeGraph {
        (&raw mut *self).cast()
    }
    /// A copy that can be changed.
    pub(crate) fn own(model: Model, registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Own(Box::new(model)), registry)
    }
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
    pub(crate) fn model(&self) -> &Model {
        match &self.model {
            Held::Rewritten(m) => m,
            Held::Shown(m) => m,
            Held::Own(m) => m,
        }
    }
    fn model_mut(&mut self) -> Result<&mut Model> {
        match &mut self.model {
            Held::Rewritten(m) => Ok(m),
            Held::Own(m) => Ok(m),
            Held::Shown(_) => Err(Error::usage("a model that is shown to a device cannot be changed")),
        }
    }
    pub(crate) fn live(&self, id: u32) -> Result<NodeId> {
        let id = NodeId(id);
        self.model().get(id).map(|_| id).ok_or_else(|| Error::usage(format!("node {} does not exist", id.0)))
    }
    fn value(&self, v: CarafeValue) -> Result<Value> {
        let node = self.live(v.node)?;
        let n = self.model().node(node).outputs().len();
        if (v.port as usize) < n {
            Ok(Value { node, port: v.port as usize })
        } else {
            Err(Error::usage(format!("node {} has {n} outputs, {} was asked for", v.node, v.port)))
        }
    }
    fn ids(&mut self, ids: Vec<u32>, out: *mut *const u32, n: *mut usize) {
        let len = ids.len();
        let kept = self.arena.keep(ids);
        // SAFETY: the contract gives places to write to.
        unsafe {
            n.write(len);
            out.write(kept);
        }
    }
}

/// # Safety
/// `g` must be the pointer of a live bridge that nothing else uses now.
pub(crate) unsafe fn bridge<'x>(g: *mut CarafeGraph) -> &'x mut GraphBridge<'x> {
    // SAFETY: the caller promises; `base` is the first field of the `repr(C)` struct.
    unsafe { &mut *g.cast() }
}

unsafe extern "C" fn nodes(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: the other side passes on the pointer it was given, places to write to, and whole texts and lists, as the
    // contract says; so in every function below.
    let b = unsafe { bridge(g) };
    guard(|| {
        let ids = b.model().topological_order()?.into_iter().map(|id| id.0).collect();
        b.ids(ids, out, n);
        Ok(())
    })
}

unsafe extern "C" fn parameters(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    b.ids(b.model().parameters().iter().map(|id| id.0).collect(), out, n);
    CARAFE_OK
}

unsafe extern "C" fn results(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    b.ids(b.model().results().iter().map(|id| id.0).collect(), out, n);
    CARAFE_OK
}

unsafe extern "C" fn node(g: *mut CarafeGraph, id: u32, out: *mut CarafeNodeInfo) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        let node = b.model().node(id);
        let texts = [node.name(), node.op().type_name(), node.op().opset()].map(str::to_string);
        let (n_inputs, n_outputs) = (node.inputs().len(), node.outputs().len());
        let [name, op_type, opset] = texts.map(|t| b.arena.text(&t));
        // SAFETY: as in `nodes`.
        unsafe { out.write(CarafeNodeInfo { name, op_type, opset, n_inputs, n_outputs }) };
        Ok(())
    })
}

unsafe extern "C" fn attrs(g: *mut CarafeGraph, id: u32, out: *mut CarafeAttrs) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        let list = b.model().node(id).op().attrs();
        let codes = attrs_code(list.iter().map(|(n, v)| (n.as_ref(), v)), &mut b.arena)?;
        // SAFETY: as in `nodes`.
        unsafe { out.write(codes) };
        Ok(())
    })
}

unsafe extern "C" fn input(g: *mut CarafeGraph, id: u32, input: usize, out: *mut CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        let v = b.model().input(id, input).ok_or_else(|| Error::not_found(format!("there is no input {input}")))?;
        // SAFETY: as in `nodes`.
        unsafe { out.write(value_code(v)) };
        Ok(())
    })
}

unsafe extern "C" fn fact(g: *mut CarafeGraph, value: CarafeValue, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let v = b.value(value)?;
        let fact = b.model().fact(v);
        let (ty, shape) = (fact.ty, fact.shape.clone());
        let code = fact_code(ty, &shape, &mut b.arena);
        // SAFETY: as in `nodes`.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn constant_of(g: *mut CarafeGraph, value: CarafeValue, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let v = b.value(value)?;
        let constant = b.model().producer::<Constant>(v).map(|(_, c)| c.tensor().clone());
        let tensor = constant.ok_or_else(|| Error::not_found("the value is not a constant"))?;
        let kept = b.arena.keep(vec![tensor]);
        // SAFETY: the arena holds the one element behind `kept`; the place as in `nodes`.
        unsafe { out.write(tensor_code(&*kept, &mut b.arena)) };
        Ok(())
    })
}

unsafe extern "C" fn users(
    g: *mut CarafeGraph,
    value: CarafeValue,
    out: *mut *const CarafeUse,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let v = b.value(value)?;
        let uses: Vec<CarafeUse> =
            b.model().users(v).iter().map(|u| CarafeUse { node: u.node.0, input: u.input as u32 }).collect();
        let len = uses.len();
        let kept = b.arena.keep(uses);
        // SAFETY: as in `nodes`.
        unsafe {
            n.write(len);
            out.write(kept);
        }
        Ok(())
    })
}

unsafe extern "C" fn info(g: *mut CarafeGraph, id: u32, key: CarafeStr, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        // SAFETY: as in `nodes`.
        let key = unsafe { text(key, "a key")? };
        let info = &b.model().node(id).rt_info;
        let tree = info.user.iter().find(|t| t.key == key).and_then(|t| t.value.clone());
        let field = || info.get(key).map(|a| a.fields.first().map_or(String::new(), |f| f.1.clone()));
        let found = tree.or_else(field).ok_or_else(|| Error::not_found(format!("no information `{key}`")))?;
        let code = b.arena.text(&found);
        // SAFETY: as in `nodes`.
        unsafe { out.write(code) };
        Ok(())
    })
}

unsafe extern "C" fn set_info(g: *mut CarafeGraph, id: u32, key: CarafeStr, value: CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        // SAFETY: as in `nodes`.
        let (key, value) = unsafe { (text(key, "a key")?, text(value, "a value")?) };
        let info = b.model_mut()?.rt_info_mut(id);
        if graph_ir::RUNTIME_KEYS.contains(&key) {
            info.set(key, "0", vec![("value".into(), value.to_string())]);
            return Ok(());
        }
        info.user.retain(|t| t.key != key);
        info.user.push(RtTree::leaf(key, value));
        Ok(())
    })
}

unsafe extern "C" fn add(
    g: *mut CarafeGraph,
    name: CarafeStr,
    op: CarafeStr,
    inputs: *const CarafeValue,
    n_inputs: usize,
    attrs: CarafeAttrs,
    out: *mut u32,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        // SAFETY: as in `nodes`.
        let (name, op, inputs, attrs) = unsafe {
            let inputs = items(inputs, n_inputs, "inputs")?;
            (text(name, "the name of a node")?, text(op, "the name of an operation")?, inputs, attrs_of(attrs)?)
        };
        let inputs = inputs.iter().map(|v| b.value(*v)).collect::<Result<Vec<_>>>()?;
        let ours = op.strip_prefix(REPLACEMENT).and_then(|rest| rest.strip_prefix("::"));
        let (opset, kind) = match ours {
            // It waits in the graph as decoded and is made when that is translated.
            Some(ours) if b.decoded => (Some(REPLACEMENT), ours),
            other => split_name(other.unwrap_or(op))?,
        };
        let found = match opset {
            Some(opset) => b.registry.find(kind, opset),
            None => b.registry.newest(kind),
        };
        let made = match found {
            Some(found) => found.create(&attrs)?,
            None if b.decoded => decoded_op(opset, kind, &attrs)?,
            None => return Err(Error::not_found(format!("there is no operation `{op}`"))),
        };
        let id = b.model_mut()?.add_ref(name, made, &inputs)?;
        // SAFETY: as in `nodes`.
        unsafe { out.write(id.0) };
        Ok(())
    })
}

// An operation of a graph as decoded. How many outputs it has is told by an attribute that is none of its own.
fn decoded_op(opset: Option<&str>, kind: &str, attrs: &AttrMap) -> Result<Arc<dyn Op>> {
    let n = attrs.read(N_OUTPUTS, Some(1usize))?;
    if n > 1024 {
        return Err(Error::usage(format!("{n} outputs of `{kind}` are too many")));
    }
    let mut node = FrameworkNode::new(opset.unwrap_or_default(), kind).with_outputs(n);
    for (name, value) in attrs.iter().filter(|(name, _)| *name != N_OUTPUTS) {
        node.attrs.set(name, value.clone());
    }
    Ok(Arc::new(node))
}

unsafe extern "C" fn add_constant(
    g: *mut CarafeGraph,
    name: CarafeStr,
    tensor: *const CarafeTensor,
    out: *mut CarafeValue,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        // SAFETY: as in `nodes`; null is refused.
        let (name, tensor) = unsafe {
            let tensor = tensor.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            (text(name, "the name of a constant")?, tensor_of(tensor)?)
        };
        let v = b.model_mut()?.constant(name, tensor)?;
        // SAFETY: as in `nodes`.
        unsafe { out.write(value_code(v)) };
        Ok(())
    })
}

unsafe extern "C" fn replace(g: *mut CarafeGraph, old: CarafeValue, new: CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let (old, new) = (b.value(old)?, b.value(new)?);
        b.model_mut()?.replace_value(old, new);
        Ok(())
    })
}

unsafe extern "C" fn set_input(g: *mut CarafeGraph, id: u32, input: usize, value: CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let (id, v) = (b.live(id)?, b.value(value)?);
        if input >= b.model().node(id).inputs().len() {
            return Err(Error::usage(format!("there is no input {input}")));
        }
        b.model_mut()?.set_input(id, input, v);
        Ok(())
    })
}

unsafe extern "C" fn set_name(g: *mut CarafeGraph, id: u32, name: CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        // SAFETY: as in `nodes`.
        let name = unsafe { text(name, "the name of a node")? };
        b.model_mut()?.set_name(id, name);
        Ok(())
    })
}

unsafe extern "C" fn remove(g: *mut CarafeGraph, id: u32) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        b.model_mut()?.remove(id)
    })
}

unsafe extern "C" fn evaluate(
    g: *mut CarafeGraph,
    id: u32,
    inputs: *const CarafeTensor,
    n_inputs: usize,
    out: *mut CarafeEval,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let id = b.live(id)?;
        // SAFETY: as in `nodes`.
        let tensors =
            unsafe { items(inputs, n_inputs, "inputs")?.iter().map(|t| tensor_of(t)).collect::<Result<_>>()? };
        // SAFETY: the contract gives a live context.
        unsafe { graph_ir::evaluate_with(b.model(), id, tensors, out) }
    })
}

unsafe extern "C" fn ir(
    g: *mut CarafeGraph,
    xml: *mut CarafeStr,
    buffers: *mut *const CarafeBuffer,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        if b.ir.is_none() {
            b.ir = Some(carafe_ir::write_parts(b.model(), &carafe_ir::WriteOptions::transfer())?);
        }
        let Some((text, parts)) = &b.ir else { return Err(Error::invalid("the text of the model is not there")) };
        let list: Vec<CarafeBuffer> = parts
            .iter()
            .map(|p| CarafeBuffer { offset: p.offset, data: p.bytes().as_ptr().cast(), bytes: p.bytes().len() })
            .collect();
        let (text, len) = (CarafeStr::of(text), list.len());
        let kept = b.arena.keep(list);
        // SAFETY: as in `nodes`.
        unsafe {
            xml.write(text);
            n.write(len);
            buffers.write(kept);
        }
        Ok(())
    })
}

unsafe extern "C" fn retain(g: *mut CarafeGraph) -> *mut CarafeGraph {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    let model = match &b.model {
        Held::Rewritten(m) => Arc::new(Model::clone(m)),
        Held::Shown(m) => m.clone(),
        Held::Own(m) => Arc::new(Model::clone(m)),
    };
    Box::into_raw(Box::new(GraphBridge::shown(model, b.registry.clone()))).cast()
}

unsafe extern "C" fn release(g: *mut CarafeGraph) {
    if !g.is_null() {
        // SAFETY: `retain` made the box, and the contract gives it back once.
        drop(unsafe { Box::from_raw(g.cast::<GraphBridge<'static>>()) });
    }
}

unsafe extern "C" fn scratch(g: *mut CarafeGraph) -> *mut CarafeGraph {
    // SAFETY: as in `nodes`.
    let registry = unsafe { bridge(g) }.registry.clone();
    Box::into_raw(Box::new(GraphBridge::scratch(registry))).cast()
}

unsafe extern "C" fn ops(g: *mut CarafeGraph, out: *mut *const CarafeStr, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    let registry = b.registry.clone();
    let own = registry.all().into_iter().filter(|f| f.info.since == 0);
    let names: Vec<CarafeStr> = own.map(|f| b.arena.text(&format!("{}::{}", f.info.opset, f.info.xml_name))).collect();
    let len = names.len();
    let kept = b.arena.keep(names);
    // SAFETY: as in `nodes`.
    unsafe {
        n.write(len);
        out.write(kept);
    }
    CARAFE_OK
}

unsafe extern "C" fn tensor_names(
    g: *mut CarafeGraph,
    value: CarafeValue,
    out: *mut *const CarafeStr,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    let b = unsafe { bridge(g) };
    guard(|| {
        let v = b.value(value)?;
        let names = match b.model().op_at::<ResultOp>(v.node) {
            Some(_) => b.model().result_names(v.node),
            None => b.model().output(v).names.clone(),
        };
        let codes: Vec<CarafeStr> = names.iter().map(|name| b.arena.text(name)).collect();
        let len = codes.len();
        let kept = b.arena.keep(codes);
        // SAFETY: as in `nodes`.
        unsafe {
            n.write(len);
            out.write(kept);
        }
        Ok(())
    })
}

// SAFETY: buffers are plain numbers and pointers; sending the list of them sends no access by itself.
unsafe impl Send for CarafeBuffer {}
// SAFETY: as above.
unsafe impl Sync for CarafeBuffer {}
