//! From messages to a `SourceGraph`: calls of functions are replaced by their nodes, named behind the call; functions that
//! operations hold (`then_branch`, `body`) become sub-graphs. Resources are no values of the engine: a sub-graph reads those of
//! the graph around it by name, and the node that holds it passes on nothing but tensors.
//!
//! A value is called by its node, `node`, and by its port from the second on, `node:1`.

use crate::attributes;
use crate::functions::Functions;
use crate::needed::{needed, node_of};
use crate::outputs;
use crate::resources::Resources;
use crate::store::Store;
use crate::types::{self, DataType, RESOURCE};
use crate::unread::leave_unread;
use crate::wire::{ArgDef, AttrEntry, AttrValue, FunctionDef, NodeDef, entry};
use crate::writes::{Writes, carried, needs_no_value, writes_resource};
use carafe_frontend::{Held, SourceGraph, SourceNode, SourceValue};
use carafe_graph::{Error, ItemType, Result};
use carafe_tensor::{Dim, PartialShape};
use prost::Message;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Functions inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 64;
/// Times its own size that a model may grow to when functions are expanded.
const GROWTH: usize = 1000;
/// Bytes that count for any file, however small.
const LEAST_BYTES: usize = 64 * 1024;
/// Bytes that no model unfolds to that is not as large itself.
const MOST_BYTES: usize = 1 << 31;

/// What all graphs of one model share.
pub(crate) struct Expander<'m> {
    pub(crate) functions: Functions<'m>,
    pub(crate) store: &'m Store,
    pub(crate) resources: &'m Resources<'m>,
    /// Types for which the user has a rule: they are no calls even when a function is named so.
    pub(crate) is_users: &'m dyn Fn(&str) -> bool,
    /// Version of TensorFlow's graphs that wrote the model; 0 when it does not say.
    pub(crate) producer: i32,
    budget: Cell<usize>,
}

/// Where the names of a body mean something.
struct Env<'e, 'm> {
    /// In front of all names of nodes.
    prefix: String,
    /// The nodes of the body.
    nodes: Writes<'m>,
    /// In a function: the values of its arguments.
    args: Option<HashMap<&'m str, Vec<String>>>,
    /// Attributes that the caller gives.
    attrs: &'e [AttrEntry],
    /// The functions that this body lies in.
    open: Vec<&'m str>,
}

/// The name of an output of a node.
pub(crate) fn value_name(node: &str, port: usize) -> String {
    if port == 0 { node.to_string() } else { format!("{node}:{port}") }
}

/// Graph under construction.
#[derive(Default)]
struct Builder {
    graph: SourceGraph,
    /// Outputs of calls, and what the functions give for them.
    renamed: HashMap<String, String>,
}

impl<'m> Expander<'m> {
    /// For a model of that many bytes.
    pub(crate) fn new(
        functions: Functions<'m>,
        store: &'m Store,
        resources: &'m Resources<'m>,
        is_users: &'m dyn Fn(&str) -> bool,
        bytes: usize,
        producer: i32,
    ) -> Expander<'m> {
        let most = MOST_BYTES.max(bytes.saturating_mul(4));
        let budget = bytes.saturating_add(LEAST_BYTES).saturating_mul(GROWTH).min(most);
        Expander { functions, store, resources, is_users, producer, budget: Cell::new(budget) }
    }

    /// The marked nodes of a graph; `fed` are values that are given from outside.
    pub(crate) fn graph(&self, nodes: &'m [NodeDef], marked: &[bool], fed: &[SourceValue]) -> Result<SourceGraph> {
        let env = Env { prefix: String::new(), nodes: Writes::new(nodes), args: None, attrs: &[], open: vec![] };
        let mut b = Builder::default();
        b.graph.inputs.extend_from_slice(fed);
        let fed: HashSet<&str> = fed.iter().map(|v| v.name.as_str()).collect();
        for (node, _) in nodes.iter().zip(marked).filter(|(_, m)| **m) {
            if fed.contains(node.name.as_str()) && self.functions.n_outputs(node) == 1 {
                continue;
            }
            if feeds_inputs(&node.op) && !(self.is_users)(&node.op) {
                continue;
            }
            let before = b.graph.nodes.len();
            self.node(node, &env, &mut b)?;
            // What is given from outside is not made here.
            let made = b.graph.nodes[before..].iter_mut().flat_map(|n| &mut n.outputs);
            made.filter(|o| fed.contains(o.as_str())).for_each(String::clear);
        }
        b.finish()
    }

    fn spend(&self, bytes: usize) -> Result<()> {
        let left = self.budget.get().checked_sub(bytes).ok_or_else(|| {
            Error::invalid(format!("functions unfold the model to more than {GROWTH} times its size"))
        })?;
        self.budget.set(left);
        Ok(())
    }

    fn node(&self, node: &'m NodeDef, env: &Env<'_, 'm>, b: &mut Builder) -> Result<()> {
        let name = format!("{}{}", env.prefix, node.name);
        let size = node.input.iter().map(|i| i.len() + env.prefix.len() + 24).sum::<usize>();
        let attr_size = node.attr.iter().map(attr_size).sum::<usize>();
        self.spend(256 + 3 * name.len() + size + attr_size)?;
        let attrs = bound(&node.attr, env.attrs);
        if let Some((function, given)) = self.functions.called(node).filter(|_| !(self.is_users)(&node.op)) {
            let given = bound(given, env.attrs);
            return self.call(node, name, function, &given, env, b);
        }
        if env.args.is_none() && input_op(&node.op) && !(self.is_users)(&node.op) {
            b.graph.inputs.extend(self.inputs(node, &attrs));
            return Ok(());
        }
        let mut made = self.plain(node, name, &attrs, env)?;
        self.hold(node, &attrs, env, &mut made)?;
        b.graph.nodes.push(made);
        Ok(())
    }

    // A node without its sub-graphs.
    fn plain(&self, node: &'m NodeDef, name: String, attrs: &[AttrEntry], env: &Env<'_, 'm>) -> Result<SourceNode> {
        let mut made = SourceNode { op_type: node.op.clone(), ..SourceNode::default() };
        for input in &node.input {
            match input.strip_prefix('^') {
                Some(control) => made.controls.push(format!("{}{control}", env.prefix)),
                None => made.inputs.push(self.value(input, env).map_err(|e| e.at(format!("node `{name}`")))?),
            }
        }
        if let Some(write) = env.nodes.before(node) {
            made.inputs[0] = format!("{}{}", env.prefix, write.name);
        }
        if needs_no_value(&node.op) && !made.inputs.is_empty() {
            made.inputs.remove(0);
        }
        let args = self.functions.outputs(node);
        match outputs::n_outputs(args.as_deref(), attrs) {
            _ if writes_resource(&node.op) => made.outputs = vec![name.clone()],
            Some(n) => made.outputs = (0..n).map(|port| value_name(&name, port)).collect(),
            None => made.fault = Some(Error::invalid("its attributes do not say how many outputs it has")),
        }
        for a in attrs {
            let Some(value) = a.value.as_ref().filter(|_| a.key != "_class") else { continue };
            match attributes::value(&a.key, value, self.store) {
                Ok(Some(value)) => made.attrs.set(a.key.clone(), value),
                Ok(None) => {}
                Err(e) => made.held.push((a.key.clone(), Held::Broken(e.at(format!("attribute `{}`", a.key))))),
            }
        }
        made.name = name;
        self.resources.attach(&mut made, self.store);
        Ok(made)
    }

    // The value that a reference means.
    fn value(&self, reference: &str, env: &Env<'_, 'm>) -> Result<String> {
        let unknown = || Error::invalid(format!("reads `{reference}`, which nothing produces"));
        let Some(args) = &env.args else {
            let (node, port) = reference.split_once(':').unwrap_or((reference, "0"));
            return Ok(value_name(&format!("{}{node}", env.prefix), port.parse().map_err(|_| unknown())?));
        };
        let mut parts = reference.split(':');
        let (name, output, index) = (parts.next().unwrap_or(""), parts.next(), parts.next());
        if let Some(values) = args.get(name) {
            let index: usize = output.unwrap_or("0").parse().map_err(|_| unknown())?;
            return values.get(index).cloned().ok_or_else(unknown);
        }
        let node = env.nodes.node(name).ok_or_else(unknown)?;
        let index: usize = index.unwrap_or("0").parse().map_err(|_| unknown())?;
        let args = self.functions.outputs(node);
        let attrs = bound(&node.attr, env.attrs);
        let port = match output {
            None => Some(0),
            // Short for `node:0` of an operation with one output.
            Some(number) if index == 0 && number.parse::<usize>().is_ok() => number.parse().ok(),
            Some(output) => outputs::port(args.as_deref(), &attrs, output, index),
        };
        let port =
            port.ok_or_else(|| Error::invalid(format!("reads `{reference}`, and {} has no such output", node.op)))?;
        Ok(value_name(&format!("{}{name}", env.prefix), port))
    }

    fn body(&self, name: &str) -> Result<&'m FunctionDef> {
        self.functions.get(name).ok_or_else(|| Error::invalid(format!("the model has no function `{name}`")))
    }

    // Puts the nodes of a function in place of its call.
    fn call(
        &self,
        node: &'m NodeDef,
        name: String,
        function: &str,
        attrs: &[AttrEntry],
        env: &Env<'_, 'm>,
        b: &mut Builder,
    ) -> Result<()> {
        let body = self.body(function).map_err(|e| e.at(format!("node `{name}`")))?;
        let data = node.input.iter().filter(|i| !i.starts_with('^'));
        let given = data.map(|i| self.value(i, env)).collect::<Result<Vec<_>>>();
        let given = given.map_err(|e| e.at(format!("node `{name}`")))?;
        let inner = self.enter(body, format!("{name}/"), &given, attrs, env)?;
        let outputs = self.expand(body, &inner, b)?;
        for (port, value) in outputs.into_iter().enumerate() {
            b.renamed.insert(value_name(&name, port), value);
        }
        Ok(())
    }

    // A function with values for its arguments.
    fn enter<'e>(
        &self,
        body: &'m FunctionDef,
        prefix: String,
        given: &[String],
        attrs: &'e [AttrEntry],
        outer: &Env<'_, 'm>,
    ) -> Result<Env<'e, 'm>> {
        let name = body.signature.as_ref().map_or("", |s| s.name.as_str());
        if outer.open.contains(&name) {
            return Err(Error::invalid(format!("function `{name}` calls itself")));
        }
        if outer.open.len() >= MAX_DEPTH {
            return Err(Error::invalid(format!("functions call each other deeper than {MAX_DEPTH}")));
        }
        let open = outer.open.iter().copied().chain([name]).collect();
        let mut args = HashMap::new();
        let mut values = given.iter();
        for arg in arguments(body) {
            let n = outputs::arg_count(arg, attrs).unwrap_or(1);
            args.insert(arg.name.as_str(), values.by_ref().take(n).cloned().collect());
        }
        Ok(Env { prefix, nodes: Writes::new(&body.node_def), args: Some(args), attrs, open })
    }

    // The nodes that the outputs of a function need, and the values of its outputs.
    fn expand(&self, body: &'m FunctionDef, env: &Env<'_, 'm>, b: &mut Builder) -> Result<Vec<String>> {
        let returned = returned(body);
        let roots = returned.iter().map(|(_, reference)| node_of(reference).0);
        let marked = needed(&body.node_def, roots, |_| false);
        for (node, _) in body.node_def.iter().zip(&marked).filter(|(_, m)| **m) {
            self.node(node, env, b)?;
        }
        returned.iter().map(|(_, reference)| self.value(reference, env)).collect()
    }

    // Makes sub-graphs of the functions that an operation holds.
    fn hold(&self, node: &'m NodeDef, attrs: &[AttrEntry], env: &Env<'_, 'm>, made: &mut SourceNode) -> Result<()> {
        let mut held = vec![];
        for a in attrs {
            let Some(value) = &a.value else { continue };
            if let Some(f) = &value.func {
                held.push((a.key.clone(), f));
            }
            let list = value.list.iter().flat_map(|l| &l.func).enumerate();
            held.extend(list.map(|(i, f)| (format!("{}/{i}", a.key), f)));
        }
        if held.is_empty() {
            return Ok(());
        }
        // A rule of the user decides itself what it passes on.
        let of_user = (self.is_users)(&node.op).then_some(0);
        let Some(first) = of_user.or_else(|| passed_from(&node.op)) else { return Ok(()) };
        let mut resources: Vec<usize> = vec![];
        for (attribute, f) in held {
            let given = bound(&f.attr, env.attrs);
            let graph = self.sub_graph(made, &attribute, &f.name, &given, first, env);
            match graph {
                Ok((graph, found)) => {
                    resources.extend(found);
                    made.held.push((attribute, Held::Graph(Rc::new(graph))));
                }
                Err(e) => made.held.push((attribute.clone(), Held::Broken(e.at(format!("`{attribute}`"))))),
            }
        }
        leave_out_resources(made, first, &resources);
        Ok(())
    }

    // A function as a graph, and the numbers of the arguments that are resources.
    fn sub_graph(
        &self,
        node: &SourceNode,
        attribute: &str,
        function: &str,
        attrs: &[AttrEntry],
        first: usize,
        outer: &Env<'_, 'm>,
    ) -> Result<(SourceGraph, Vec<usize>)> {
        let body = self.body(function)?;
        let prefix = format!("{}/{attribute}/", node.name);
        let (mut given, mut resources) = (vec![], vec![]);
        let mut b = Builder::default();
        for arg in arguments(body) {
            let n = outputs::arg_count(arg, attrs).unwrap_or(1);
            for i in 0..n {
                let number = given.len();
                if data_type(arg, i, attrs) == Some(RESOURCE) {
                    let outer = node.inputs.get(first + number).cloned().unwrap_or_default();
                    resources.push(number);
                    given.push(outer);
                    continue;
                }
                let name = if i == 0 { format!("{prefix}{}", arg.name) } else { format!("{prefix}{}:{i}", arg.name) };
                b.graph.inputs.push(SourceValue::new(&name, declared(body, arg, number, i, attrs)));
                given.push(name);
            }
        }
        if attribute == "body" {
            let roots = returned(body).into_iter().map(|(_, reference)| node_of(reference).0);
            let marked = needed(&body.node_def, roots, |_| false);
            if let Some(variable) = carried(body, &marked) {
                return Err(Error::unsupported(format!(
                    "function `{function}` writes the variable `{variable}` in a loop and reads it in the next iteration; \
                     pass its value through the loop as a tensor"
                )));
            }
        }
        let env = self.enter(body, prefix, &given, attrs, outer)?;
        let outputs = self.expand(body, &env, &mut b)?;
        let types = returned_types(body, attrs);
        let kept = outputs.into_iter().zip(types).filter(|(_, ty)| *ty != Some(RESOURCE));
        b.graph.outputs = Some(kept.map(|(name, _)| SourceValue::unknown(name)).collect());
        b.graph.name = function.to_string();
        Ok((b.finish()?, resources))
    }

    // The inputs of the graph that a node of the file stands for.
    fn inputs(&self, node: &NodeDef, attrs: &[AttrEntry]) -> Vec<SourceValue> {
        if node.op == "Placeholder" {
            let ty = self.placeholder(attrs).map_err(|e| e.at(format!("input `{}`", node.name)));
            return vec![SourceValue::new(&node.name, ty)];
        }
        let lists = [("output_types", "output_shapes"), ("component_types", "shapes")];
        for (types, shapes) in lists {
            let Some(types) = entry(attrs, types).and_then(|v| v.list.as_ref()).map(|l| &l.r#type) else { continue };
            let shapes = entry(attrs, shapes).and_then(|v| v.list.as_ref()).map_or(&[][..], |l| &l.shape[..]);
            let value = |(port, ty): (usize, &i32)| {
                let shape = shapes.get(port).map_or(Ok(PartialShape::dynamic()), types::shape);
                let ty = DataType::of(*ty).and_then(|ty| Ok(ItemType::Tensor(ty.element_type(), shape?)));
                SourceValue::new(value_name(&node.name, port), ty)
            };
            return types.iter().enumerate().map(value).collect();
        }
        vec![SourceValue::unknown(&node.name)]
    }

    fn placeholder(&self, attrs: &[AttrEntry]) -> Result<ItemType> {
        let number = entry(attrs, "dtype").and_then(|v| v.r#type).unwrap_or(0);
        let (ty, complex) = match DataType::of(number)? {
            DataType::Plain(ty) => (ty, false),
            DataType::Complex(ty) => (ty, true),
            DataType::Opaque(name) => {
                return Err(Error::unsupported(format!("inputs of type {name} are not supported")));
            }
        };
        let shape = entry(attrs, "shape").and_then(|v| v.shape.as_ref());
        // Before version 24 a shape without dimensions was the only way to say that nothing is known.
        let known = shape.filter(|s| !(s.dim.is_empty() && (1..24).contains(&self.producer)));
        let mut shape = known.map_or(Ok(PartialShape::dynamic()), types::shape)?;
        if let (true, Some(dims)) = (complex, shape.dims()) {
            shape = PartialShape::new(dims.iter().copied().chain([Dim::known(2)]));
        }
        Ok(ItemType::Tensor(ty, shape))
    }
}

impl Builder {
    // Lets everybody read what the functions give, and nobody make what nobody reads.
    fn finish(mut self) -> Result<SourceGraph> {
        let all: Vec<String> = self.renamed.keys().cloned().collect();
        for name in all {
            let end = self.end(&name)?.to_string();
            self.graph.second_names.entry(end.clone()).or_default().extend(names_of(&name));
            self.graph.aliases.insert(name, end);
        }
        let aliases = &self.graph.aliases;
        let end = |name: &mut String| {
            if let Some(other) = aliases.get(name.as_str()) {
                name.clone_from(other);
            }
        };
        self.graph.nodes.iter_mut().flat_map(|n| &mut n.inputs).for_each(end);
        self.graph.outputs.iter_mut().flatten().for_each(|o| end(&mut o.name));
        for name in self.graph.nodes.iter().flat_map(|n| &n.outputs).filter(|o| !o.contains(':')) {
            self.graph.second_names.entry(name.clone()).or_default().push(format!("{name}:0"));
        }
        for input in self.graph.inputs.iter_mut().filter(|i| !i.name.contains(':')) {
            input.names.push(format!("{}:0", input.name));
            input.names.extend(self.graph.second_names.remove(&input.name).into_iter().flatten());
        }
        if self.graph.outputs.is_some() {
            leave_unread(&mut self.graph, &[]);
        }
        Ok(self.graph)
    }

    fn end<'n>(&'n self, mut name: &'n str) -> Result<&'n str> {
        for _ in 0..=self.renamed.len() {
            match self.renamed.get(name) {
                Some(next) => name = next,
                None => return Ok(name),
            }
        }
        Err(Error::invalid(format!("a function gives `{name}` for itself")))
    }
}

// Bytes that an attribute takes in a graph: lists grow, raw tensors stay as they are.
fn attr_size(a: &AttrEntry) -> usize {
    let Some(value) = &a.value else { return a.key.len() + 48 };
    let raw = value.tensor.as_ref().map_or(0, |t| t.tensor_content.len());
    a.key.len() + 48 + raw + 8 * value.encoded_len().saturating_sub(raw)
}

// The tensor names of a value.
fn names_of(value: &str) -> Vec<String> {
    let first = (!value.contains(':')).then(|| format!("{value}:0"));
    first.into_iter().chain([value.to_string()]).collect()
}

// Nodes that are inputs of the model.
fn input_op(op: &str) -> bool {
    matches!(op, "Placeholder" | "PlaceholderV2" | "IteratorGetNext")
        || matches!(op, "QueueDequeue" | "QueueDequeueV2" | "QueueDequeueMany" | "QueueDequeueManyV2")
        || matches!(op, "QueueDequeueUpTo" | "QueueDequeueUpToV2")
}

// What inputs of the model are taken from: nothing else reads it.
fn feeds_inputs(op: &str) -> bool {
    matches!(op, "Iterator" | "IteratorV2" | "OneShotIterator") || op.ends_with("Queue") || op.ends_with("QueueV2")
}

// The first input that an operation passes to the functions it holds; `None` for one whose functions are not translated.
fn passed_from(op: &str) -> Option<usize> {
    match op {
        "While" | "StatelessWhile" => Some(0),
        "If" | "StatelessIf" | "Case" | "StatelessCase" => Some(1),
        "For" => Some(3),
        _ => None,
    }
}

// A loop or a branch passes on no resources: its functions read them by name.
fn leave_out_resources(node: &mut SourceNode, first: usize, resources: &[usize]) {
    if resources.is_empty() {
        return;
    }
    let gone: HashSet<usize> = resources.iter().map(|i| i + first).collect();
    let keep = |list: &mut Vec<String>| {
        let mut at = 0;
        list.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    };
    keep(&mut node.inputs);
    // What goes into a loop comes out of it; what a branch gives is its own.
    if matches!(node.op_type.as_str(), "While" | "StatelessWhile" | "For") {
        let mut at = first;
        node.outputs.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    }
}

fn arguments(body: &FunctionDef) -> &[ArgDef] {
    body.signature.as_ref().map_or(&[], |s| &s.input_arg)
}

// Outputs of a function and what they refer to, in order.
fn returned(body: &FunctionDef) -> Vec<(&ArgDef, &str)> {
    let args = body.signature.as_ref().map_or(&[][..], |s| &s.output_arg);
    let find = |arg: &ArgDef| body.ret.iter().rev().find(|r| r.key == arg.name).map_or("", |r| r.value.as_str());
    args.iter().map(|arg| (arg, find(arg))).collect()
}

fn returned_types(body: &FunctionDef, attrs: &[AttrEntry]) -> Vec<Option<i32>> {
    returned(body).iter().map(|(arg, _)| data_type(arg, 0, attrs)).collect()
}

// The declared type of tensor `index` of an argument.
fn data_type(arg: &ArgDef, index: usize, attrs: &[AttrEntry]) -> Option<i32> {
    match (arg.r#type, arg.type_attr.as_str(), arg.type_list_attr.as_str()) {
        (0, "", list) => entry(attrs, list)?.list.as_ref()?.r#type.get(index).copied(),
        (0, attr, _) => entry(attrs, attr)?.r#type,
        (number, _, _) => Some(number),
    }
}

// What a function declares of an argument.
fn declared(body: &FunctionDef, arg: &ArgDef, number: usize, index: usize, attrs: &[AttrEntry]) -> Result<ItemType> {
    let ty = data_type(arg, index, attrs).map_or(Ok(DataType::Opaque("invalid")), DataType::of)?;
    let of_arg = body.arg_attr.iter().find(|e| e.key as usize == number).and_then(|e| e.value.as_ref());
    let shapes = of_arg.and_then(|a| entry(&a.attr, "_output_shapes")).and_then(|v| v.list.as_ref());
    let shape = shapes.and_then(|l| l.shape.first()).map_or(Ok(PartialShape::dynamic()), types::shape)?;
    // Nothing is known of the shape that carries a complex or an opaque value.
    let shape = if matches!(ty, DataType::Plain(_)) { shape } else { PartialShape::dynamic() };
    Ok(ItemType::Tensor(ty.element_type(), shape))
}

// Attributes with those of the caller in place of references to them.
fn bound<'a>(attrs: &'a [AttrEntry], caller: &[AttrEntry]) -> Cow<'a, [AttrEntry]> {
    let refers = |e: &AttrEntry| e.value.as_ref().is_some_and(|v| v.placeholder.is_some());
    if !attrs.iter().any(refers) {
        return Cow::Borrowed(attrs);
    }
    let mut attrs = attrs.to_vec();
    for e in attrs.iter_mut().filter(|e| refers(e)) {
        let name = e.value.as_ref().and_then(|v| v.placeholder.as_deref()).unwrap_or("");
        if let Some(value) = entry(caller, name) {
            e.value = Some(AttrValue::clone(value));
        }
    }
    Cow::Owned(attrs)
}
