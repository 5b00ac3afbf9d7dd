//! A model of this side as text and back, and the evaluation of single nodes, for devices of the other side.

use crate::crossing::{object, put, writable};
use crate::graph_export::{Behind, GraphBridge, at, hand_out};
use crate::op_export::{eval_outputs_to, from_host};
use crate::status::guard;
use crate::tables::*;
use crate::text::{items, slice, text};
use carafe_graph::{AttrMap, Constant, Error, EvalEnv, FrameworkNode, Model, NodeId, Op, Result, eval_op};
use carafe_tensor::{SharedBytes, Tensor};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Arc;

/// Runtime information that the graph that really runs has as attributes, not as the user's data.
pub(crate) const RUNTIME_KEYS: &[&str] = &[
    "execOrder",
    "primitiveType",
    "execDevice",
    "execTimeMcs",
    "runtimePrecision",
    "outputLayouts",
    "originalLayersNames",
    carafe_device::KERNEL_TROUBLE,
];

pub(crate) unsafe extern "C" fn model_name(g: *mut CarafeGraph, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: the other side passes on the pointer it was given, places to write to, and whole texts and lists, as the
    // contract says; so in every function below.
    unsafe { at(g, |b| put(out, b.name()?, "a name")) }
}

pub(crate) unsafe extern "C" fn can_evaluate(g: *mut CarafeGraph, id: u32) -> CarafeStatus {
    // SAFETY: as in `model_name`.
    unsafe {
        at(g, |b| {
            let op = b.node(id)?.op();
            if op.is::<FrameworkNode>() {
                return Err(Error::unsupported(format!("no operation of opset `{}` has this name", op.opset())));
            }
            if op.has_eval() { Ok(()) } else { Err(Error::unsupported("the operation has no evaluation")) }
        })
    }
}

/// What a function needs of a graph that works outside of its turn, because it may call libraries.
///
/// # Safety
/// `g` must be null or a live graph.
unsafe fn ask<T>(g: *mut CarafeGraph, f: impl FnOnce(&Behind<'_>) -> T) -> Result<T> {
    // SAFETY: passed on from the caller.
    Ok(f(&unsafe { object::<CarafeGraph, Behind<'_>>(g, "a graph")? }.turn("a graph")?.inner))
}

pub(crate) unsafe extern "C" fn read_ir(
    g: *mut CarafeGraph,
    xml: CarafeStr,
    buffers: *const CarafeBuffer,
    n: usize,
    out: *mut *mut CarafeGraph,
) -> CarafeStatus {
    // SAFETY: as in `model_name`; the contract gives as many bytes as each buffer says.
    guard(|| unsafe {
        writable(out, "a graph")?;
        let registry = ask(g, |b| b.registry().clone())?;
        let weights = copied(items(buffers, n, "buffers")?)?;
        let options = carafe_ir::ReadOptions { old_api: false, ..Default::default() };
        let model = carafe_ir::read_parts(text(xml, "the text of a model")?, weights, &registry, &options)?;
        put(out, hand_out(GraphBridge::shown(Arc::new(model), registry)), "a graph")
    })
}

pub(crate) unsafe extern "C" fn copy(g: *mut CarafeGraph, out: *mut *mut CarafeGraph) -> CarafeStatus {
    // SAFETY: as in `model_name`.
    guard(|| unsafe {
        writable(out, "a graph")?;
        let (model, registry) = ask(g, |b| (b.snapshot(), b.registry().clone()))?;
        put(out, hand_out(GraphBridge::own(Model::clone(&model), registry)), "a graph")
    })
}

pub(crate) unsafe extern "C" fn write_text(g: *mut CarafeGraph, write: CarafeWrite, sink: *mut c_void) -> CarafeStatus {
    // SAFETY: as in `model_name`; the text lives until the call returns, the sink is the caller's own.
    guard(|| unsafe {
        let model: Arc<Model> = ask(g, |b| b.snapshot())?;
        let text = text_without_weights(Model::clone(&model))?;
        from_host(write(sink, text.as_ptr().cast(), text.len()))
    })
}

/// A model as text alone: constants become nodes that say what they are and hold nothing.
pub(crate) fn text_without_weights(mut model: Model) -> Result<String> {
    let constants: Vec<_> = model.nodes().filter(|(_, n)| n.op().is::<Constant>()).map(|(id, _)| id).collect();
    for id in constants {
        let fact = model.fact(id.into());
        let op = FrameworkNode {
            type_name: "Constant".into(),
            opset: "execution".into(),
            attrs: AttrMap::default(),
            outputs: vec![(fact.ty, fact.shape.clone())],
            rule: None,
        };
        model.set_op(id, Arc::new(op))?;
    }
    Ok(carafe_ir::write_parts(&model, &carafe_ir::WriteOptions::transfer())?.0)
}

/// Evaluates a node with variables that the context of the other side keeps, and gives the outputs to that context.
///
/// # Safety
/// `out` must be null or a live context.
pub(crate) unsafe fn evaluate_with(
    name: &str,
    id: NodeId,
    op: &dyn Op,
    inputs: Vec<Tensor>,
    out: *mut CarafeEval,
) -> Result<()> {
    let mut ids = BTreeSet::new();
    variables_of(op, &mut ids);
    let mut env = EvalEnv::default();
    if ids.is_empty() {
        let outputs = eval_op(name, id, op, inputs, &mut env)?;
        // SAFETY: passed on from the caller; so below.
        return unsafe { eval_outputs_to(out, outputs) };
    }
    // SAFETY: as above.
    let (variable, assign) = unsafe { state_functions(out)? };
    for id in &ids {
        let mut code = CarafeAttr::EMPTY.tensor;
        // SAFETY: as above; the place lives until the call returns, and what comes back is copied before the next call.
        match unsafe { variable(out, CarafeStr::of(id), &mut code) } {
            CARAFE_NOT_FOUND => {}
            status => {
                from_host(status)?;
                // SAFETY: as above.
                env.variables.insert(id.clone(), unsafe { crate::convert::tensor_of(&code)? });
            }
        }
    }
    let outputs = eval_op(name, id, op, inputs, &mut env)?;
    for (id, value) in &env.variables {
        let mut arena = crate::convert::Arena::default();
        let code = crate::convert::tensor_code(value, &mut arena);
        // SAFETY: as above; the tensor lives until the call returns.
        from_host(unsafe { assign(out, CarafeStr::of(id), &code) })?;
    }
    // SAFETY: as above.
    unsafe { eval_outputs_to(out, outputs) }
}

// Ids of the variables of an operation and of its bodies.
fn variables_of(op: &dyn Op, ids: &mut BTreeSet<String>) {
    if op.info().stateful {
        ids.extend(op.attrs().into_iter().find(|(name, _)| name == "variable_id").and_then(|(_, v)| v.to_text()));
    }
    for (_, body) in op.bodies() {
        body.model.nodes().for_each(|(_, node)| variables_of(node.op(), ids));
    }
}

type Variable = unsafe extern "C" fn(*mut CarafeEval, CarafeStr, *mut CarafeTensor) -> CarafeStatus;
type Assign = unsafe extern "C" fn(*mut CarafeEval, CarafeStr, *const CarafeTensor) -> CarafeStatus;

/// A context of a library may leave these two out.
///
/// # Safety
/// `cx` must be a live context.
unsafe fn state_functions(cx: *mut CarafeEval) -> Result<(Variable, Assign)> {
    const NEEDED: usize = std::mem::offset_of!(CarafeEvalFns, assign) + size_of::<Assign>();
    let missing = || Error::usage("a null pointer for the context that takes the outputs");
    // SAFETY: a live context has its table, which begins with its size; the two fields are read as what they may be, a
    // function or null.
    let found = unsafe {
        let fns = cx.as_ref().ok_or_else(missing)?.fns;
        if fns.is_null() {
            return Err(missing());
        }
        match (&raw const (*fns).size).read() >= NEEDED {
            true => (&raw const (*fns).variable)
                .cast::<Option<Variable>>()
                .read()
                .zip((&raw const (*fns).assign).cast::<Option<Assign>>().read()),
            false => None,
        }
    };
    found.ok_or_else(|| Error::unsupported("the node has variables, and the device gives none to its evaluation"))
}

/// # Safety
/// Each buffer must hold as many bytes as it says.
unsafe fn copied(buffers: &[CarafeBuffer]) -> Result<Vec<(u64, SharedBytes)>> {
    let mut all = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        // SAFETY: passed on from the caller.
        let bytes = unsafe { slice(buffer.data.cast::<u8>(), buffer.bytes, "a buffer of weights")? };
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len())
            .map_err(|_| Error::invalid(format!("there is no memory for {} bytes of weights", bytes.len())))?;
        copy.extend_from_slice(bytes);
        all.push((buffer.offset, SharedBytes::from_vec(copy)));
    }
    Ok(all)
}
