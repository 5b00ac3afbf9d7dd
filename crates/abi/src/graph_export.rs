//! Offers a `Model` of this side to rewrites and devices of the other.

use crate::convert::{Arena, attrs_code, attrs_of, fact_code, tensor_code, tensor_of};
use crate::crossing::{Crossing, ask, object, put, with, writable};
use crate::graph_ir;
use crate::host::end;
use crate::rule_import::value_code;
use crate::status::guard;
use crate::tables::*;
use crate::text::{items, text};
use carafe_frontend::split_name;
use carafe_graph::{
    AttrMap, Constant, Error, FrameworkNode, Model, Node, NodeId, Op, REPLACEMENT, Registry, Result, ResultOp, RtTree,
    Value,
};
use carafe_ir::WeightPart;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

/// The crossing object.
#[repr(transparent)]
pub(crate) struct GraphBridge<'a>(Crossing<CarafeGraph, Behind<'a>>);

/// What is behind it.
pub(crate) struct Behind<'a> {
    model: Held<'a>,
    registry: Arc<Registry>,
    /// A graph as decoded: every name is an operation.
    decoded: bool,
    answers: Answers,
}

/// What was handed out. The same question gets the same answer, in the same memory, until the model changes.
#[derive(Default)]
struct Answers {
    given: HashMap<Question, Box<dyn Any>>,
    arena: Arena,
}

#[derive(PartialEq, Eq, Hash)]
enum Question {
    ModelName,
    Nodes,
    Parameters,
    Results,
    Node(u32),
    Attrs(u32),
    Fact(Value),
    Constant(Value),
    Users(Value),
    Info(u32, String),
    TensorNames(Value),
    Ops,
    Ir,
}

/// A list as it is handed out.
type List<T> = (*const T, usize);

impl Answers {
    fn once<A: Copy + 'static>(&mut self, question: Question, make: impl FnOnce(&mut Arena) -> Result<A>) -> Result<A> {
        if let Some(answer) = self.given.get(&question).and_then(|a| a.downcast_ref::<A>()) {
            return Ok(*answer);
        }
        let answer = make(&mut self.arena)?;
        self.given.insert(question, Box::new(answer));
        Ok(answer)
    }
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
        GraphBridge::new(Held::Rewritten(model), registry, decoded)
    }
    /// For a device; it cannot be changed.
    pub(crate) fn shown(model: Arc<Model>, registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Shown(model), registry, false)
    }
    /// Empty, to be filled.
    pub(crate) fn scratch(registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Own(empty()), registry, false)
    }
    /// A copy that can be changed.
    pub(crate) fn own(model: Model, registry: Arc<Registry>) -> GraphBridge<'static> {
        GraphBridge::new(Held::Own(Box::new(model)), registry, false)
    }
    fn new(model: Held<'_>, registry: Arc<Registry>, decoded: bool) -> GraphBridge<'_> {
        let behind = Behind { model, registry, decoded, answers: Answers::default() };
        GraphBridge(Crossing::new(CarafeGraph { fns: &FNS }, behind))
    }
    pub(crate) fn pointer(&self) -> *mut CarafeGraph {
        self.0.pointer()
    }
}

fn empty() -> Box<Model> {
    Box::new(Model::new("scratch"))
}

impl Held<'_> {
    fn model(&self) -> &Model {
        match self {
            Held::Rewritten(m) => m,
            Held::Shown(m) => m,
            Held::Own(m) => m,
        }
    }
    fn live(&self, id: u32) -> Result<NodeId> {
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
}

impl Behind<'_> {
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
    pub(crate) fn node(&self, id: u32) -> Result<&Node> {
        Ok(self.model.model().node(self.model.live(id)?))
    }
    /// Name of the model.
    pub(crate) fn name(&mut self) -> Result<CarafeStr> {
        self.answers.once(Question::ModelName, |a| Ok(a.text(&self.model.model().name)))
    }
    /// The model, to be changed. What was answered before stays where it is and is not answered again.
    fn change(&mut self) -> Result<&mut Model> {
        let model = match &mut self.model {
            Held::Rewritten(m) => &mut **m,
            Held::Own(m) => &mut **m,
            Held::Shown(_) => return Err(Error::usage("a model that is shown to a device cannot be changed")),
        };
        self.answers.given.clear();
        Ok(model)
    }
}

const WHAT: &str = "a graph";

/// # Safety
/// `g` must be null or the pointer of a live bridge.
pub(crate) unsafe fn at(g: *mut CarafeGraph, f: impl FnOnce(&mut Behind<'_>) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe { with::<CarafeGraph, Behind<'_>>(g, WHAT, f) }
}

/// Answers a question with a list.
///
/// # Safety
/// As for `at`; `out` and `n` must be null or places to write to.
unsafe fn list<T: Copy + Send + Sync + 'static>(
    g: *mut CarafeGraph,
    out: *mut *const T,
    n: *mut usize,
    f: impl FnOnce(&mut Behind<'_>) -> Result<List<T>>,
) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe {
        at(g, |b| {
            writable(out, "a list")?;
            writable(n, "the length of a list")?;
            let (kept, len) = f(b)?;
            put(n, len, "the length of a list")?;
            put(out, kept, "a list")
        })
    }
}

fn kept<T: Send + Sync + 'static>(items: Vec<T>, arena: &mut Arena) -> List<T> {
    let n = items.len();
    (arena.keep(items), n)
}

fn ids(ids: impl IntoIterator<Item = NodeId>, arena: &mut Arena) -> List<u32> {
    kept(ids.into_iter().map(|id| id.0).collect(), arena)
}

unsafe extern "C" fn nodes(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: the other side passes on the pointer it was given, places to write to, and whole texts and lists, as the
    // contract says; so in every function below.
    unsafe {
        list(g, out, n, |b| b.answers.once(Question::Nodes, |a| Ok(ids(b.model.model().topological_order()?, a))))
    }
}

unsafe extern "C" fn parameters(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, out, n, |b| {
            b.answers.once(Question::Parameters, |a| Ok(ids(b.model.model().parameters().iter().copied(), a)))
        })
    }
}

unsafe extern "C" fn results(g: *mut CarafeGraph, out: *mut *const u32, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, out, n, |b| {
            b.answers.once(Question::Results, |a| Ok(ids(b.model.model().results().iter().copied(), a)))
        })
    }
}

unsafe extern "C" fn node(g: *mut CarafeGraph, id: u32, out: *mut CarafeNodeInfo) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "a node")?;
            let node = b.model.model().node(b.model.live(id)?);
            let info = b.answers.once(Question::Node(id), |a| {
                let [name, op_type, opset] = [node.name(), node.op().type_name(), node.op().opset()].map(|t| a.text(t));
                let (n_inputs, n_outputs) = (node.inputs().len(), node.outputs().len());
                Ok(CarafeNodeInfo { name, op_type, opset, n_inputs, n_outputs })
            })?;
            put(out, info, "a node")
        })
    }
}

unsafe extern "C" fn attrs(g: *mut CarafeGraph, id: u32, out: *mut CarafeAttrs) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "attributes")?;
            let node = b.model.model().node(b.model.live(id)?);
            let codes = b.answers.once(Question::Attrs(id), |a| {
                let list = node.op().attrs();
                attrs_code(list.iter().map(|(n, v)| (n.as_ref(), v)), a)
            })?;
            put(out, codes, "attributes")
        })
    }
}

unsafe extern "C" fn input(g: *mut CarafeGraph, id: u32, input: usize, out: *mut CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "a value")?;
            let v = b.model.model().input(b.model.live(id)?, input);
            let v = v.ok_or_else(|| Error::not_found(format!("there is no input {input}")))?;
            put(out, value_code(v), "a value")
        })
    }
}

unsafe extern "C" fn fact(g: *mut CarafeGraph, value: CarafeValue, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "a fact")?;
            let v = b.model.value(value)?;
            let fact = b.model.model().fact(v);
            let code = b.answers.once(Question::Fact(v), |a| Ok(fact_code(fact.ty, &fact.shape, a)))?;
            put(out, code, "a fact")
        })
    }
}

unsafe extern "C" fn constant_of(g: *mut CarafeGraph, value: CarafeValue, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "a tensor")?;
            let v = b.model.value(value)?;
            let constant = b.model.model().producer::<Constant>(v);
            let (_, constant) = constant.ok_or_else(|| Error::not_found("the value is not a constant"))?;
            let code = b.answers.once(Question::Constant(v), |a| {
                let kept = a.keep(vec![constant.tensor().clone()]);
                // The arena holds the one element behind `kept`.
                Ok(tensor_code(&*kept, a))
            })?;
            put(out, code, "a tensor")
        })
    }
}

unsafe extern "C" fn users(
    g: *mut CarafeGraph,
    value: CarafeValue,
    out: *mut *const CarafeUse,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, out, n, |b| {
            let v = b.model.value(value)?;
            b.answers.once(Question::Users(v), |a| {
                let users = b.model.model().users(v).iter();
                Ok(kept(users.map(|u| CarafeUse { node: u.node.0, input: u.input as u32 }).collect(), a))
            })
        })
    }
}

unsafe extern "C" fn info(g: *mut CarafeGraph, id: u32, key: CarafeStr, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            writable(out, "a text")?;
            let (node, key) = (b.model.live(id)?, text(key, "a key")?);
            let info = &b.model.model().node(node).rt_info;
            let tree = info.user.iter().find(|t| t.key == key).and_then(|t| t.value.clone());
            let field = || info.get(key).map(|a| a.fields.first().map_or(String::new(), |f| f.1.clone()));
            let found = tree.or_else(field).ok_or_else(|| Error::not_found(format!("no information `{key}`")))?;
            let code = b.answers.once(Question::Info(id, key.to_string()), |a| Ok(a.text(&found)))?;
            put(out, code, "a text")
        })
    }
}

unsafe extern "C" fn set_info(g: *mut CarafeGraph, id: u32, key: CarafeStr, value: CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            let id = b.model.live(id)?;
            let (key, value) = (text(key, "a key")?, text(value, "a value")?);
            let info = b.change()?.rt_info_mut(id);
            if graph_ir::RUNTIME_KEYS.contains(&key) {
                info.set(key, "0", vec![("value".into(), value.to_string())]);
                return Ok(());
            }
            info.user.retain(|t| t.key != key);
            info.user.push(RtTree::leaf(key, value));
            Ok(())
        })
    }
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
    unsafe {
        at(g, |b| {
            writable(out, "the id of a node")?;
            let (name, op) = (text(name, "the name of a node")?, text(op, "the name of an operation")?);
            let attrs = attrs_of(attrs)?;
            let inputs = items(inputs, n_inputs, "inputs")?.iter();
            let inputs = inputs.map(|v| b.model.value(*v)).collect::<Result<Vec<_>>>()?;
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
            let id = b.change()?.add_ref(name, made, &inputs)?;
            put(out, id.0, "the id of a node")
        })
    }
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
    // SAFETY: as in `nodes`; null is refused.
    unsafe {
        at(g, |b| {
            writable(out, "a value")?;
            let tensor = tensor.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            let (name, tensor) = (text(name, "the name of a constant")?, tensor_of(tensor)?);
            let v = b.change()?.constant(name, tensor)?;
            put(out, value_code(v), "a value")
        })
    }
}

unsafe extern "C" fn replace(g: *mut CarafeGraph, old: CarafeValue, new: CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            let (old, new) = (b.model.value(old)?, b.model.value(new)?);
            b.change()?.replace_value(old, new);
            Ok(())
        })
    }
}

unsafe extern "C" fn set_input(g: *mut CarafeGraph, id: u32, input: usize, value: CarafeValue) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            let (id, v) = (b.model.live(id)?, b.model.value(value)?);
            if input >= b.model.model().node(id).inputs().len() {
                return Err(Error::usage(format!("there is no input {input}")));
            }
            b.change()?.set_input(id, input, v);
            Ok(())
        })
    }
}

unsafe extern "C" fn set_name(g: *mut CarafeGraph, id: u32, name: CarafeStr) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            let (id, name) = (b.model.live(id)?, text(name, "the name of a node")?);
            b.change()?.set_name(id, name);
            Ok(())
        })
    }
}

unsafe extern "C" fn remove(g: *mut CarafeGraph, id: u32) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        at(g, |b| {
            let id = b.model.live(id)?;
            b.change()?.remove(id)?;
            // A scratch model is filled and emptied over and over; begun anew, it needs no more memory each time.
            if let Held::Own(model) = &mut b.model
                && model.nodes().next().is_none()
            {
                **model = Model::new(&model.name);
                b.answers = Answers::default();
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn evaluate(
    g: *mut CarafeGraph,
    id: u32,
    inputs: *const CarafeTensor,
    n_inputs: usize,
    out: *mut CarafeEval,
) -> CarafeStatus {
    guard(|| {
        // SAFETY: as in `nodes`.
        let bridge = unsafe { object::<CarafeGraph, Behind<'_>>(g, WHAT)? };
        let (node, name, op) = {
            let b = &bridge.turn(WHAT)?.inner;
            let node = b.model.live(id)?;
            let found = b.model.model().node(node);
            (node, found.name().to_string(), found.op_ref().clone())
        };
        // Outside of the turn: others go on, and whoever takes the outputs may ask the graph.
        // SAFETY: as in `nodes`.
        let tensors =
            unsafe { items(inputs, n_inputs, "inputs")?.iter().map(|t| tensor_of(t)).collect::<Result<_>>()? };
        // SAFETY: the contract gives a live context; null is refused.
        unsafe { graph_ir::evaluate_with(&name, node, &*op, tensors, out) }
    })
}

unsafe extern "C" fn ir(
    g: *mut CarafeGraph,
    xml: *mut CarafeStr,
    buffers: *mut *const CarafeBuffer,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, buffers, n, |b| {
            writable(xml, "a text")?;
            let (text, list) = b.answers.once(Question::Ir, |a| {
                let written = carafe_ir::write_parts(b.model.model(), &carafe_ir::WriteOptions::transfer())?;
                // Kept whole: the buffers point into its parts.
                let held = &*a.keep(vec![written]);
                let buffer = |p: &WeightPart| CarafeBuffer {
                    offset: p.offset,
                    data: p.bytes().as_ptr().cast(),
                    bytes: p.bytes().len(),
                };
                Ok((CarafeStr::of(&held.0), kept(held.1.iter().map(buffer).collect(), a)))
            })?;
            put(xml, text, "a text")?;
            Ok(list)
        })
    }
}

unsafe extern "C" fn retain(g: *mut CarafeGraph) -> *mut CarafeGraph {
    // SAFETY: as in `nodes`.
    unsafe {
        ask(g, WHAT, std::ptr::null_mut(), |b: &mut Behind<'_>| {
            hand_out(GraphBridge::shown(b.snapshot(), b.registry.clone()))
        })
    }
}

unsafe extern "C" fn release(g: *mut CarafeGraph) {
    if !g.is_null() {
        // SAFETY: `retain` or `scratch` made the box, and the contract gives it back once.
        end("the end of a graph", || drop(unsafe { Box::from_raw(g.cast::<GraphBridge<'static>>()) }));
    }
}

unsafe extern "C" fn scratch(g: *mut CarafeGraph) -> *mut CarafeGraph {
    // SAFETY: as in `nodes`.
    unsafe {
        ask(g, WHAT, std::ptr::null_mut(), |b: &mut Behind<'_>| hand_out(GraphBridge::scratch(b.registry.clone())))
    }
}

// A graph that `release` ends.
pub(crate) fn hand_out(graph: GraphBridge<'static>) -> *mut CarafeGraph {
    Box::into_raw(Box::new(graph)).cast()
}

impl Behind<'_> {
    pub(crate) fn snapshot(&self) -> Arc<Model> {
        match &self.model {
            Held::Rewritten(m) => Arc::new(Model::clone(m)),
            Held::Shown(m) => m.clone(),
            Held::Own(m) => Arc::new(Model::clone(m)),
        }
    }
}

unsafe extern "C" fn ops(g: *mut CarafeGraph, out: *mut *const CarafeStr, n: *mut usize) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, out, n, |b| {
            b.answers.once(Question::Ops, |a| {
                let own = b.registry.all().into_iter().filter(|f| f.info.since == 0);
                Ok(kept(own.map(|f| a.text(&format!("{}::{}", f.info.opset, f.info.xml_name))).collect(), a))
            })
        })
    }
}

unsafe extern "C" fn tensor_names(
    g: *mut CarafeGraph,
    value: CarafeValue,
    out: *mut *const CarafeStr,
    n: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `nodes`.
    unsafe {
        list(g, out, n, |b| {
            let v = b.model.value(value)?;
            b.answers.once(Question::TensorNames(v), |a| {
                let model = b.model.model();
                let names = match model.op_at::<ResultOp>(v.node) {
                    Some(_) => model.result_names(v.node),
                    None => model.output(v).names.clone(),
                };
                Ok(kept(names.iter().map(|name| a.text(name)).collect(), a))
            })
        })
    }
}

// SAFETY: buffers are plain numbers and pointers; sending the list of them sends no access by itself.
unsafe impl Send for CarafeBuffer {}
// SAFETY: as above.
unsafe impl Sync for CarafeBuffer {}
