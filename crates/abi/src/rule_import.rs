//! A rule behind a table: offers the `NodeCx` of a source node to it.

use crate::convert::{Arena, attr_code, attrs_code, attrs_of, fact_code, tensor_code, tensor_of};
use crate::crossing::{Crossing, ask, put, with, writable};
use crate::library::Library;
use crate::op_import::User;
use crate::tables::*;
use crate::text::{c_text, items, opt_c_text, text};
use carafe_frontend::{Item, NodeCx, Outputs, Rule};
use carafe_graph::{AttrValue, Error, NodeId, Result, Value};
use std::sync::Arc;

/// # Safety
/// The table must be whole, as `CarafeRegistrarFns::add_rule` asks, and live as long as the library.
pub(crate) unsafe fn import_rule(table: CarafeRule, library: &Arc<Library>) -> Result<Rule> {
    let convert = table.convert.ok_or_else(|| Error::invalid("a rule without a function"))?;
    // SAFETY: the caller promises zero-terminated texts, or null; so below.
    let op_type = unsafe { c_text(table.op_type, "the type of a rule")? }.to_string();
    // SAFETY: as above.
    let framework = unsafe { opt_c_text(table.framework, "the framework of a rule")? }.map(str::to_ascii_lowercase);
    // SAFETY: as above.
    let domain = unsafe { opt_c_text(table.domain, "the domain of a rule")? }.map(str::to_string);
    let user = User::new(table.user, library);
    let translate = move |n: &mut NodeCx<'_>| {
        let behind = Behind { cx: n, arena: Arena::default(), outputs: Vec::new() };
        let bridge = Crossing::new(CarafeNode { fns: &FNS }, behind);
        // SAFETY: the table is whole, `user` keeps the library mapped, the bridge lives until the call returns.
        user.library().call("convert", || unsafe { convert(user.pointer(), bridge.pointer()) })?;
        Ok(Outputs(bridge.into_inner().outputs))
    };
    // 1 is for all versions, also for those of formats that count none.
    let since = if table.since <= 1 { 0 } else { table.since };
    Ok(Rule { framework, domain, op_type, since, translate: Arc::new(translate), origin: None })
}

/// What is behind the crossing object of a source node.
struct Behind<'a, 'b> {
    cx: &'a mut NodeCx<'b>,
    arena: Arena,
    outputs: Vec<Item>,
}

const WHAT: &str = "the node of a rule";

static FNS: CarafeNodeFns = CarafeNodeFns {
    size: size_of::<CarafeNodeFns>(),
    op_type,
    domain,
    name,
    version,
    n_inputs,
    input,
    n_inputs_named,
    input_named,
    n_outputs,
    output_name,
    attrs,
    attr,
    fact,
    constant_of,
    emit,
    constant,
    set_output,
    n_graphs,
    graph_name,
    inline_graph,
    leave_attr: Some(leave_attr),
};

/// # Safety
/// `cx` must be null or the pointer of a live bridge.
unsafe fn at(cx: *mut CarafeNode, f: impl FnOnce(&mut Behind<'_, '_>) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    unsafe { with::<CarafeNode, Behind<'_, '_>>(cx, WHAT, f) }
}

pub(crate) fn value_code(v: Value) -> CarafeValue {
    CarafeValue { node: v.node.0, port: v.port as u32 }
}

impl Behind<'_, '_> {
    fn value(&self, v: CarafeValue) -> Result<Value> {
        let value = Value { node: NodeId(v.node), port: v.port as usize };
        let ports = self.cx.model().get(value.node).map(|n| n.outputs().len());
        match ports {
            Some(n) if value.port < n => Ok(value),
            _ => Err(Error::usage(format!("value {}:{} does not exist", v.node, v.port))),
        }
    }
    /// # Safety
    /// The list must be there.
    unsafe fn values(&self, p: *const CarafeValue, n: usize) -> Result<Vec<Value>> {
        // SAFETY: passed on from the caller.
        unsafe { items(p, n, "inputs")? }.iter().map(|v| self.value(*v)).collect()
    }
}

unsafe extern "C" fn op_type(cx: *mut CarafeNode, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: the rule passes on the pointer it was given, places to write to, and whole texts and lists, as the contract
    // says; so in every function below.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.cx.op_type()), "a text")) }
}

unsafe extern "C" fn domain(cx: *mut CarafeNode, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.cx.domain()), "a text")) }
}

unsafe extern "C" fn name(cx: *mut CarafeNode, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.cx.name()), "a text")) }
}

unsafe extern "C" fn version(cx: *mut CarafeNode) -> i64 {
    // SAFETY: as in `op_type`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.version()) }
}

unsafe extern "C" fn n_inputs(cx: *mut CarafeNode) -> usize {
    // SAFETY: as in `op_type`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.n_inputs()) }
}

unsafe extern "C" fn input(cx: *mut CarafeNode, input: usize, out: *mut CarafeValue) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(out, "a value")?;
            let v = b.cx.opt(input)?.ok_or_else(|| Error::not_found(format!("input {input} was left out")))?;
            put(out, value_code(v), "a value")
        })
    }
}

unsafe extern "C" fn n_inputs_named(cx: *mut CarafeNode, port: CarafeStr) -> usize {
    // SAFETY: as in `op_type`.
    unsafe {
        ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| {
            text(port, "the name of a port").and_then(|p| b.cx.inputs_named(p)).map_or(0, |v| v.len())
        })
    }
}

unsafe extern "C" fn input_named(
    cx: *mut CarafeNode,
    port: CarafeStr,
    index: usize,
    out: *mut CarafeValue,
) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(out, "a value")?;
            let port = text(port, "the name of a port")?;
            let all = b.cx.inputs_named(port)?;
            let v =
                all.get(index).ok_or_else(|| Error::not_found(format!("port `{port}` has {} inputs", all.len())))?;
            put(out, value_code(*v), "a value")
        })
    }
}

unsafe extern "C" fn n_outputs(cx: *mut CarafeNode) -> usize {
    // SAFETY: as in `op_type`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.n_outputs()) }
}

unsafe extern "C" fn output_name(cx: *mut CarafeNode, output: usize, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe { at(cx, |b| put(out, CarafeStr::of(b.cx.output_name(output)), "a text")) }
}

unsafe extern "C" fn attrs(cx: *mut CarafeNode, out: *mut CarafeAttrs) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(out, "attributes")?;
            put(out, attrs_code(b.cx.attrs().iter(), &mut b.arena)?, "attributes")
        })
    }
}

unsafe extern "C" fn attr(cx: *mut CarafeNode, name: CarafeStr, out: *mut CarafeAttr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(out, "an attribute")?;
            let name = text(name, "the name of an attribute")?;
            let missing =
                || Error::not_found(format!("there is no attribute `{name}`; the node has {}", b.cx.attr_list()));
            let value: AttrValue = b.cx.attr_value(name).ok_or_else(missing)?.clone();
            put(out, attr_code(name, &value, &mut b.arena)?, "an attribute")
        })
    }
}

unsafe extern "C" fn leave_attr(cx: *mut CarafeNode, name: CarafeStr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            b.cx.leave(text(name, "the name of an attribute")?);
            Ok(())
        })
    }
}

unsafe extern "C" fn fact(cx: *mut CarafeNode, value: CarafeValue, out: *mut CarafeFact) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            let fact = b.cx.fact(b.value(value)?);
            put(out, fact_code(fact.ty, &fact.shape, &mut b.arena), "a fact")
        })
    }
}

unsafe extern "C" fn constant_of(cx: *mut CarafeNode, value: CarafeValue, out: *mut CarafeTensor) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(out, "a tensor")?;
            let t = b.cx.tensor(b.value(value)?).ok_or_else(|| Error::not_found("the value is not known"))?;
            // Kept, because emitting nodes moves what the model holds.
            let kept = b.arena.keep(vec![t.clone()]);
            put(out, tensor_code(&*kept, &mut b.arena), "a tensor")
        })
    }
}

unsafe extern "C" fn emit(
    cx: *mut CarafeNode,
    op: CarafeStr,
    inputs: *const CarafeValue,
    n_inputs: usize,
    attrs: CarafeAttrs,
    first: *mut CarafeValue,
) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            writable(first, "a value")?;
            let op = text(op, "the name of an operation")?;
            let inputs = b.values(inputs, n_inputs)?;
            let outputs = b.cx.emit_class(op, &attrs_of(attrs)?, &inputs)?;
            match outputs.first() {
                Some(v) => put(first, value_code(*v), "a value"),
                None => Ok(()),
            }
        })
    }
}

unsafe extern "C" fn constant(cx: *mut CarafeNode, tensor: *const CarafeTensor, out: *mut CarafeValue) -> CarafeStatus {
    // SAFETY: as in `op_type`; null is refused.
    unsafe {
        at(cx, |b| {
            writable(out, "a value")?;
            let t = tensor.as_ref().ok_or_else(|| Error::usage("a null pointer for a tensor"))?;
            let v = b.cx.constant(tensor_of(t)?)?;
            put(out, value_code(v), "a value")
        })
    }
}

unsafe extern "C" fn set_output(cx: *mut CarafeNode, output: usize, value: CarafeValue) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            let v = b.value(value)?;
            if output >= b.cx.n_outputs().max(1) {
                return Err(Error::usage(format!("output {output} was set, the node has {}", b.cx.n_outputs())));
            }
            if b.outputs.len() <= output {
                b.outputs.resize(output + 1, Item::Nothing);
            }
            b.outputs[output] = v.into();
            Ok(())
        })
    }
}

unsafe extern "C" fn n_graphs(cx: *mut CarafeNode) -> usize {
    // SAFETY: as in `op_type`.
    unsafe { ask(cx, WHAT, 0, |b: &mut Behind<'_, '_>| b.cx.graphs().len()) }
}

unsafe extern "C" fn graph_name(cx: *mut CarafeNode, graph: usize, out: *mut CarafeStr) -> CarafeStatus {
    // SAFETY: as in `op_type`.
    unsafe {
        at(cx, |b| {
            let graphs = b.cx.graphs();
            let missing = || Error::not_found(format!("the node has {} sub-graphs", graphs.len()));
            let name = graphs.get(graph).ok_or_else(missing)?;
            put(out, CarafeStr::of(name), "a text")
        })
    }
}

unsafe extern "C" fn inline_graph(
    cx: *mut CarafeNode,
    name: CarafeStr,
    inputs: *const CarafeValue,
    n_inputs: usize,
    outputs: *mut CarafeValue,
    n_outputs: *mut usize,
) -> CarafeStatus {
    // SAFETY: as in `op_type`; `n_outputs` says how many places there are, and is told how many were needed.
    unsafe {
        at(cx, |b| {
            writable(n_outputs, "the number of outputs")?;
            let room = n_outputs.read();
            if room > 0 {
                writable(outputs, "the outputs of a sub-graph")?;
            }
            let (name, inputs) = (text(name, "the name of a sub-graph")?, b.values(inputs, n_inputs)?);
            let facts: Vec<_> = inputs.iter().map(|v| b.cx.fact(*v).clone()).collect();
            let sub = b.cx.body(name, &facts)?;
            let made = b.cx.inline(&sub, &inputs)?;
            put(n_outputs, made.len(), "the number of outputs")?;
            if made.len() > room {
                return Err(Error::usage(format!(
                    "the sub-graph has {} outputs, there is room for {room}",
                    made.len()
                )));
            }
            for (i, item) in made.iter().enumerate() {
                let Item::Tensor(v) = item else {
                    return Err(Error::unsupported(format!("output {i} of the sub-graph is not a tensor")));
                };
                put(outputs.add(i), value_code(*v), "the outputs of a sub-graph")?;
            }
            Ok(())
        })
    }
}
