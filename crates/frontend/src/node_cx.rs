//! What a rule sees: one source node with its inputs and attributes, and the means to emit operations. Shapes are inferred
//! as nodes are emitted. It remembers which attributes were read; what the others mean is for `Unread` to say. An input behind
//! the last one that a rule of ours asks for is an error, so that nothing is dropped in silence.

use crate::builtin;
use crate::item::Item;
use crate::mapping::split_name;
use crate::source::{SourceGraph, SourceNode, shown};
use carafe_graph::{
    Attr, AttrMap, AttrValue, Error, Fact, ItemType, Model, NodeId, Op, OpFactory, OpInfo, OpRef, Registry, Result,
    Value, newest,
};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What a rule returns, one for each output of the node.
#[derive(Clone, Debug, Default)]
pub struct Outputs(pub Vec<Item>);

impl From<Value> for Outputs {
    fn from(v: Value) -> Outputs {
        Outputs(vec![v.into()])
    }
}
impl From<Item> for Outputs {
    fn from(i: Item) -> Outputs {
        Outputs(vec![i])
    }
}
impl From<Vec<Value>> for Outputs {
    fn from(v: Vec<Value>) -> Outputs {
        Outputs(v.into_iter().map(Item::Tensor).collect())
    }
}

/// A sub-graph translated into a model of its own.
#[derive(Clone, Debug)]
pub struct SubModel {
    /// The model.
    pub model: Model,
    /// Outer values the sub-graph reads, and the body parameter (by position) each became. They follow the parameters
    /// that the sub-graph declares itself.
    pub captured: Vec<(Value, usize)>,
    /// What the sub-graph gives, one for each output it declares. The values are those of `model`; its results are the
    /// tensors of this list from the first to the last, those inside of sequences included.
    pub outputs: Vec<Item>,
}

/// What a sub-graph is given for one of the inputs that it declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A value of this type.
    Whole(ItemType),
    /// A sequence whose elements come one by one, each in a parameter of its own.
    Apart(Vec<ItemType>),
    /// A value of the graph around it, captured: a constant is one in the sub-graph too.
    Outer(Item),
}

/// What a format gives its rules beyond the node itself.
pub trait Host {
    /// The model so far.
    fn model(&self) -> &Model;
    /// The model so far, for writing.
    fn model_mut(&mut self) -> &mut Model;
    /// The value of a name in the scope of the node.
    fn resolve(&mut self, name: &str) -> Result<Option<Item>>;
    /// Translates a sub-graph attribute. Its parameters get these facts, in order; further ones keep what they declare.
    fn body(&mut self, attribute: &str, parameters: &[Fact]) -> Result<SubModel>;
    /// As `body`, for formats whose sub-graphs take more than tensors.
    fn body_of(&mut self, attribute: &str, parameters: &[ItemType]) -> Result<SubModel> {
        if let Some(ty) = parameters.iter().find(|ty| ty.is_packed()) {
            return Err(Error::unsupported(format!("sub-graph `{attribute}` cannot take {ty}")));
        }
        let facts: Vec<Fact> = parameters.iter().map(ItemType::fact).collect();
        self.body(attribute, &facts)
    }
    /// Tells the user of something in the source that has been overlooked on purpose.
    fn warn(&self, _text: &str) {}
    /// The type that a sub-graph attribute declares for one of its inputs.
    fn declared_input(&self, _attribute: &str, _input: usize) -> Option<ItemType> {
        None
    }
    /// As `body_of`, for formats whose sub-graphs also take sequences apart.
    fn body_given(&mut self, attribute: &str, parameters: &[Given]) -> Result<SubModel> {
        let whole = |given: &Given| match given {
            Given::Whole(ty) => Ok(ty.clone()),
            Given::Apart(_) => Err(Error::unsupported(format!("sub-graph `{attribute}` cannot take a sequence apart"))),
            Given::Outer(_) => Err(Error::unsupported(format!("sub-graph `{attribute}` cannot take outer values"))),
        };
        let types = parameters.iter().map(whole).collect::<Result<Vec<_>>>()?;
        self.body_of(attribute, &types)
    }
    /// Every operation that can be emitted by name.
    fn registry(&self) -> Option<&Registry> {
        None
    }
    /// Emits an operation that the registry does not have and somebody else does: the engine, for a rule of a library.
    fn emit_elsewhere(&mut self, _op: &str, _attrs: &AttrMap, _inputs: &[Value]) -> Result<Option<NodeId>> {
        Ok(None)
    }
    /// An element type by its number in the format.
    fn element_type(&self, _code: i64) -> Option<ElementType> {
        None
    }
}

/// One node being translated.
pub struct NodeCx<'a> {
    host: &'a mut dyn Host,
    node: &'a SourceNode,
    read: RefCell<BTreeSet<String>>,
    /// How many inputs the rule has asked for, those left out included.
    asked: Cell<usize>,
    emitted: Vec<NodeId>,
}

impl std::fmt::Debug for NodeCx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NodeCx({:?})", self.node)
    }
}

impl<'a> NodeCx<'a> {
    /// For a rule to work in.
    pub fn new(host: &'a mut dyn Host, node: &'a SourceNode) -> NodeCx<'a> {
        NodeCx { host, node, read: RefCell::default(), asked: Cell::new(0), emitted: vec![] }
    }

    /// Refuses inputs behind the last one that the rule asked for; empty names are no inputs.
    pub fn check_inputs(&self) -> Result<()> {
        let given = self.node.inputs.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1);
        let asked = self.asked.get();
        if given <= asked {
            return Ok(());
        }
        let more: Vec<String> = self.node.inputs[asked..given].iter().map(|n| format!("`{}`", shown(n))).collect();
        let (more, s) = (more.join(", "), if asked == 1 { "" } else { "s" });
        Err(Error::invalid(format!(
            "has {given} inputs, the operation takes {asked} input{s}: {more} would have no effect"
        )))
    }

    /// Ends the translation: gives the node's name to what makes its first output. Answers with the attributes that were
    /// not read, for `Unread::judge`.
    #[must_use = "attributes that nobody read must not vanish"]
    pub fn finish(self, outputs: &Outputs) -> Vec<String> {
        let unread = self.unread();
        if let Some(Item::Tensor(value) | Item::Packed { value, .. }) = outputs.0.first()
            && self.emitted.contains(&value.node)
        {
            let name = self.base_name().to_string();
            self.host.model_mut().set_name(value.node, name);
        }
        unread
    }

    /// Names of the attributes that were not read so far.
    pub fn unread(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.node.attrs.iter().map(|(n, _)| n).filter(|n| !read.contains(*n)).map(str::to_string).collect()
    }

    // The node.

    /// Type of the node.
    pub fn op_type(&self) -> &str {
        &self.node.op_type
    }
    /// Its domain.
    pub fn domain(&self) -> &str {
        &self.node.domain
    }
    /// Version of the operation.
    pub fn version(&self) -> i64 {
        self.node.version
    }
    /// Name of the node.
    pub fn name(&self) -> &str {
        &self.node.name
    }
    /// How many outputs it has.
    pub fn n_outputs(&self) -> usize {
        self.node.outputs.len()
    }
    /// Whether anything wants this output.
    pub fn wants_output(&self, output: usize) -> bool {
        self.node.outputs.get(output).is_some_and(|n| !n.is_empty())
    }
    /// Name of an output.
    pub fn output_name(&self, output: usize) -> &str {
        self.node.outputs.get(output).map_or("", |o| shown(o))
    }
    fn base_name(&self) -> &str {
        self.node.label()
    }
    /// An error that names the node.
    pub fn fail(&self, message: impl Into<String>) -> Error {
        Error::invalid(message)
    }
    /// An error for what is well formed and cannot be translated.
    pub fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::unsupported(message)
    }

    // Inputs.

    /// How many inputs it has, those left out included.
    pub fn n_inputs(&self) -> usize {
        self.node.inputs.len()
    }
    /// Says that inputs up to this one may be there and have no effect on the result.
    pub fn ignore_inputs(&self, last: usize) {
        self.asked.set(self.asked.get().max(last + 1));
    }
    /// Whether an optional input is given.
    pub fn has(&self, input: usize) -> bool {
        self.ignore_inputs(input);
        self.node.inputs.get(input).is_some_and(|n| !n.is_empty())
    }
    /// Any kind of input; `None` when it was left out.
    pub fn item(&mut self, input: usize) -> Result<Option<Item>> {
        self.ignore_inputs(input);
        let Some(name) = self.node.inputs.get(input).filter(|n| !n.is_empty()) else { return Ok(None) };
        match self.host.resolve(name)? {
            Some(item) => Ok(Some(item)),
            None => Err(self.fail(format!("input {input} reads `{}`, which nothing produces", shown(name)))),
        }
    }
    /// A tensor input that may be left out (also an empty optional).
    pub fn opt(&mut self, input: usize) -> Result<Option<Value>> {
        match self.item(input)? {
            None | Some(Item::Nothing) => Ok(None),
            Some(Item::Tensor(v)) => Ok(Some(v)),
            Some(Item::Sequence(_)) => Err(self.fail(format!("input {input} must be a tensor, found a sequence"))),
            Some(Item::Packed { ty, .. }) => Err(self.fail(format!("input {input} must be a tensor, found {ty}"))),
        }
    }
    /// A tensor input.
    pub fn input(&mut self, input: usize) -> Result<Value> {
        self.opt(input)?.ok_or_else(|| self.fail(format!("input {input} is required and missing")))
    }
    /// All inputs, each a tensor.
    pub fn inputs(&mut self) -> Result<Vec<Value>> {
        (0..self.n_inputs()).map(|i| self.input(i)).collect()
    }

    /// The port of each input, in formats that name them.
    pub fn input_ports(&self) -> &[String] {
        &self.node.input_ports
    }
    /// The port of each output, likewise.
    pub fn output_ports(&self) -> &[String] {
        &self.node.output_ports
    }
    /// All values of a named port.
    pub fn inputs_named(&mut self, port: &str) -> Result<Vec<Value>> {
        let positions: Vec<usize> =
            self.node.input_ports.iter().enumerate().filter(|(_, p)| *p == port).map(|(i, _)| i).collect();
        positions.into_iter().map(|i| self.input(i)).collect()
    }
    /// Outputs given by port name, in the order of the node.
    pub fn by_output_names<'b>(&self, named: impl Iterator<Item = (&'b str, Value)>) -> Result<Outputs> {
        let mut items = vec![Item::Nothing; self.n_outputs()];
        for (name, value) in named {
            let at = self.node.output_ports.iter().position(|p| p == name);
            let at = at.ok_or_else(|| self.fail(format!("the node has no output `{name}`")))?;
            items[at] = value.into();
        }
        Ok(Outputs(items))
    }

    // Attributes.

    /// All attribute names, for messages.
    pub fn attr_list(&self) -> String {
        let names: Vec<&str> = self.node.attrs.iter().map(|(n, _)| n).collect();
        if names.is_empty() { "none".into() } else { format!("`{}`", names.join("`, `")) }
    }
    /// All attributes; counts as reading them.
    pub fn attrs(&self) -> &AttrMap {
        self.read.borrow_mut().extend(self.node.attrs.iter().map(|(n, _)| n.to_string()));
        &self.node.attrs
    }
    /// Names of the attributes that hold a sub-graph.
    pub fn graphs(&self) -> Vec<&str> {
        self.node.graphs().map(|(name, _)| name).collect()
    }
    /// A sub-graph as decoded.
    pub fn graph(&self, attribute: &str) -> Option<&SourceGraph> {
        self.node.graphs().find(|(name, _)| *name == attribute).map(|(_, graph)| &**graph)
    }
    /// An element type by its number in the source format.
    pub fn element_type(&self, code: i64) -> Option<ElementType> {
        self.host.element_type(code)
    }
    /// An attribute with a default.
    pub fn attr<T: Attr>(&self, name: &str, default: T) -> Result<T> {
        self.read.borrow_mut().insert(name.to_string());
        self.node.attrs.read(name, Some(default))
    }
    /// An attribute that must be there.
    pub fn required<T: Attr>(&self, name: &str) -> Result<T> {
        self.read.borrow_mut().insert(name.to_string());
        self.node.attrs.read(name, None)
    }
    /// An attribute that may be absent.
    pub fn opt_attr<T: Attr>(&self, name: &str) -> Result<Option<T>> {
        self.read.borrow_mut().insert(name.to_string());
        match self.node.attrs.get(name) {
            Some(_) => self.node.attrs.read(name, None).map(Some),
            None => Ok(None),
        }
    }
    /// An attribute as it is.
    pub fn attr_value(&self, name: &str) -> Option<&AttrValue> {
        self.read.borrow_mut().insert(name.to_string());
        self.node.attrs.get(name)
    }
    /// Says that an attribute was not read after all, for whoever reads through another's eyes.
    pub fn leave(&self, name: &str) {
        self.read.borrow_mut().remove(name);
    }
    /// Says that an attribute has no effect on the result.
    pub fn ignore(&self, names: &[&str]) {
        self.read.borrow_mut().extend(names.iter().map(|n| n.to_string()));
    }
    /// Attributes that the operation does not have, but that peers overlook: a warning where one is there.
    pub fn overlook(&self, names: &[&str]) {
        for name in names.iter().filter(|n| self.node.attrs.get(n).is_some()) {
            self.warn(&format!("{} has no attribute `{name}`, it is not looked at", self.node.op_type));
        }
        self.ignore(names);
    }
    /// Tells the user of something in the node that is wrong and was understood all the same.
    pub fn warn(&self, text: &str) {
        self.host.warn(&format!("node `{}`: {text}", self.base_name()));
    }
    /// Tells the user of something in these words.
    pub fn report(&self, text: &str) {
        self.host.warn(text);
    }
    /// Every operation that can be emitted by name.
    pub fn registry(&self) -> Option<&Registry> {
        self.host.registry()
    }
    /// Translates a sub-graph attribute whose parameters are tensors.
    pub fn body(&mut self, attribute: &str, parameters: &[Fact]) -> Result<SubModel> {
        let types: Vec<ItemType> = parameters.iter().map(ItemType::of).collect();
        self.body_of(attribute, &types)
    }
    /// Translates a sub-graph attribute.
    pub fn body_of(&mut self, attribute: &str, parameters: &[ItemType]) -> Result<SubModel> {
        if !self.has_graph(attribute) {
            return Err(self.fail(format!("attribute `{attribute}` is required and missing")));
        }
        self.host.body_of(attribute, parameters)
    }
    /// As `body_of`, where some sequences are given element by element.
    pub fn body_given(&mut self, attribute: &str, parameters: &[Given]) -> Result<SubModel> {
        if !self.has_graph(attribute) {
            return Err(self.fail(format!("attribute `{attribute}` is required and missing")));
        }
        self.host.body_given(attribute, parameters)
    }
    /// The type that a sub-graph attribute declares for one of its inputs, where it declares one.
    pub fn declared_input(&self, attribute: &str, input: usize) -> Option<ItemType> {
        self.host.declared_input(attribute, input)
    }
    /// Puts the operations of a translated sub-graph into the model itself, with these values for its own parameters.
    pub fn inline(&mut self, sub: &SubModel, arguments: &[Value]) -> Result<Vec<Item>> {
        let mut mapped: HashMap<Value, Value> = HashMap::new();
        for (i, &p) in sub.model.parameters().iter().enumerate() {
            let captured = sub.captured.iter().find(|(_, at)| *at == i).map(|(v, _)| v);
            let value = captured.or(arguments.get(i)).copied();
            let value = value.ok_or_else(|| self.fail(format!("parameter {i} of the sub-graph has no value")))?;
            mapped.insert(p.into(), value);
        }
        let at = |mapped: &HashMap<Value, Value>, v: &Value| {
            mapped.get(v).copied().ok_or_else(|| Error::invalid("the sub-graph is not in order"))
        };
        for id in sub.model.topological_order()? {
            let node = sub.model.node(id);
            if mapped.contains_key(&id.into()) || sub.model.results().contains(&id) {
                continue;
            }
            let inputs = node.inputs().iter().map(|v| at(&mapped, v)).collect::<Result<Vec<_>>>()?;
            let name = format!("{}/{}", self.base_name(), node.name());
            let new = self.host.model_mut().add_ref(name, node.op_ref().clone(), &inputs)?;
            self.emitted.push(new);
            for port in 0..node.outputs().len() {
                mapped.insert(Value { node: id, port }, Value { node: new, port });
            }
        }
        sub.outputs.iter().map(|item| item.map(&mut |v| at(&mapped, v))).collect()
    }
    /// Whether the attribute is a graph.
    pub fn has_graph(&self, attribute: &str) -> bool {
        self.node.graphs().any(|(name, _)| name == attribute)
    }

    // Facts.

    /// The model so far.
    pub fn model(&self) -> &Model {
        self.host.model()
    }
    /// What is known of a value.
    pub fn fact(&self, v: Value) -> &Fact {
        self.host.model().fact(v)
    }
    /// Element type of a value.
    pub fn ty(&self, v: Value) -> ElementType {
        self.fact(v).ty
    }
    /// Shape of a value.
    pub fn shape(&self, v: Value) -> &PartialShape {
        &self.fact(v).shape
    }
    /// Number of axes of a value, when it is known.
    pub fn rank(&self, v: Value) -> Option<usize> {
        self.shape(v).rank()
    }
    /// The rank, for rules that cannot do without it.
    pub fn known_rank(&self, v: Value) -> Result<usize> {
        self.rank(v).ok_or_else(|| self.unsupported("the rank of an input must be known"))
    }
    /// Value as integers, where known.
    pub fn ints(&self, v: Value) -> Option<Vec<i64>> {
        self.fact(v).ints()
    }
    /// The whole tensor, where known.
    pub fn tensor(&self, v: Value) -> Option<&Tensor> {
        self.fact(v).tensor()
    }
    /// An axis that may count from the end, as an index.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        carafe_graph::normalize_axis(axis, rank)
    }

    // Emitting.

    /// The tensor that carries an item as a value of this type.
    #[cfg(feature = "ops")]
    pub fn pack(&mut self, item: &Item, ty: &ItemType) -> Result<Value> {
        let name = format!("{}/packed_{}", self.base_name(), self.emitted.len());
        let model = self.host.model_mut();
        let before = model.slots();
        let value = crate::pack(model, &name, item, ty)?;
        self.emitted.extend((before..self.host.model().slots()).map(|i| NodeId(i as u32)));
        Ok(value)
    }

    /// Emits an operation and gives its first output.
    pub fn emit<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Value> {
        Ok(self.emit_node(op, inputs)?.into())
    }
    /// Emits an operation and gives all of its outputs.
    pub fn emit_all<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Vec<Value>> {
        let node = self.emit_node(op, inputs)?;
        Ok(self.outputs_of(node))
    }
    fn emit_node<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<NodeId> {
        self.emit_made(Arc::new(op), inputs)
    }
    fn emit_made(&mut self, op: OpRef, inputs: &[Value]) -> Result<NodeId> {
        let name = format!("{}/{}_{}", self.base_name(), op.info().name, self.emitted.len());
        let op = self.in_front_of(&*op)?.unwrap_or(op);
        self.add_newest(name, op, inputs)
    }
    fn add_newest(&mut self, name: String, op: OpRef, inputs: &[Value]) -> Result<NodeId> {
        let model = self.host.model_mut();
        let before = model.slots();
        let (op, inputs) = newest(model, &name, op, inputs)?;
        let id = model.add_ref(name, op, &inputs)?;
        self.emitted.extend((before..=id.0 as usize).map(|i| NodeId(i as u32)));
        Ok(id)
    }
    // A user's operation in a numbered opset stands in front of ours, as it does when such a model is read from IR.
    fn in_front_of(&self, op: &dyn Op) -> Result<Option<OpRef>> {
        let users = self.host.registry().and_then(|r| r.in_front_of(op.info()));
        let Some(users) = users.filter(|_| !op.has_body()) else { return Ok(None) };
        let attrs: AttrMap = op.attrs().into_iter().map(|(n, v)| (n.into_owned(), v)).collect();
        let made = users.create(&attrs);
        made.map(Some).map_err(|e| e.at(format!("the user's operation `{}::{}`", users.info.opset, users.info.name)))
    }
    // The class behind `Type` or `opset::Type`.
    fn factory(&self, op: &str) -> Result<OpFactory> {
        let (opset, name) = split_name(op)?;
        let registry =
            self.host.registry().ok_or_else(|| self.unsupported("this format emits no operations by name"))?;
        let found = match opset {
            Some(opset) => registry.find(name, opset),
            None => registry.newest(name),
        };
        found.cloned().ok_or_else(|| {
            let near = registry.near(name);
            let hint = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
            Error::not_found(match opset {
                Some(opset) => format!("there is no operation `{name}` in `{opset}`{hint}"),
                None => format!("there is no operation `{name}`{hint}"),
            })
        })
    }
    /// Declaration of an operation by name.
    pub fn class(&self, op: &str) -> Result<&'static OpInfo> {
        Ok(self.factory(op)?.info)
    }
    /// Emits an operation by name (`Type`, `opsetN::Type`) and gives all of its outputs. A rule of a library reaches the
    /// operations of the engine in this way too.
    pub fn emit_class(&mut self, op: &str, attrs: &AttrMap, inputs: &[Value]) -> Result<Vec<Value>> {
        let unknown = match self.factory(op) {
            Ok(class) => return self.emit_ref(class.create(attrs)?, inputs),
            Err(e) => e,
        };
        let node = self.host.emit_elsewhere(op, attrs, inputs)?.ok_or(unknown)?;
        self.emitted.push(node);
        Ok(self.outputs_of(node))
    }
    /// As `emit_class`, with the attributes in a list, and for the first output alone:
    /// `n.emit_named("Concat", [("axis", 1.into())], &[a, b])`.
    pub fn emit_named<'n>(
        &mut self,
        op: &str,
        attrs: impl IntoIterator<Item = (&'n str, AttrValue)>,
        inputs: &[Value],
    ) -> Result<Value> {
        let attrs: AttrMap = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let outputs = self.emit_class(op, &attrs, inputs)?;
        outputs.first().copied().ok_or_else(|| self.fail(format!("`{op}` has no output")))
    }
    fn outputs_of(&self, node: NodeId) -> Vec<Value> {
        (0..self.host.model().node(node).outputs().len()).map(|port| Value { node, port }).collect()
    }
    /// Emits an operation that is made already and gives all of its outputs.
    pub fn emit_ref(&mut self, op: OpRef, inputs: &[Value]) -> Result<Vec<Value>> {
        let name = format!("{}/{}_{}", self.base_name(), op.info().name, self.emitted.len());
        let node = self.add_newest(name, op, inputs)?;
        Ok(self.outputs_of(node))
    }
    /// A constant.
    pub fn constant(&mut self, tensor: Tensor) -> Result<Value> {
        let name = format!("{}/const_{}", self.base_name(), self.emitted.len());
        let v = self.host.model_mut().constant(&name, tensor)?;
        self.emitted.push(v.node);
        Ok(v)
    }
    /// A constant of this name behind the node's own.
    pub fn named_constant(&mut self, name: &str, tensor: Tensor) -> Result<Value> {
        let name = format!("{}/{name}", self.base_name());
        let v = self.host.model_mut().constant(&name, tensor)?;
        self.emitted.push(v.node);
        Ok(v)
    }
    /// An i64 vector.
    pub fn i64s(&mut self, values: &[i64]) -> Result<Value> {
        self.constant(Tensor::from_slice(&[values.len()], values)?)
    }
    /// An i64 scalar.
    pub fn i64(&mut self, value: i64) -> Result<Value> {
        self.constant(Tensor::scalar(value))
    }
    /// A scalar of the given type.
    pub fn scalar(&mut self, ty: ElementType, value: f64) -> Result<Value> {
        self.constant(Tensor::from_f64(ty, &[], &[value])?)
    }
    /// A scalar of the element type that `like` has.
    pub fn scalar_like(&mut self, like: Value, value: f64) -> Result<Value> {
        match self.ty(like) {
            ElementType::Dynamic => {
                let c = self.scalar(ElementType::F32, value)?;
                builtin::convert_like(self, c, like)
            }
            ty => self.scalar(ty, value),
        }
    }
    /// The shape of a value as an i64 vector.
    pub fn shape_of(&mut self, v: Value) -> Result<Value> {
        builtin::shape_of(self, v)
    }
    /// The value in another element type; itself when it has that already.
    pub fn convert(&mut self, v: Value, ty: ElementType) -> Result<Value> {
        if self.ty(v) == ty { Ok(v) } else { builtin::convert(self, v, ty) }
    }
    /// The value in the element type of another.
    pub fn convert_like(&mut self, v: Value, like: Value) -> Result<Value> {
        match (self.ty(v), self.ty(like)) {
            (_, ElementType::Dynamic) | (ElementType::Dynamic, _) => builtin::convert_like(self, v, like),
            (a, b) if a == b => Ok(v),
            (_, ty) => self.convert(v, ty),
        }
    }
    /// Reshape to a fixed pattern; 0 copies, -1 is what is left.
    pub fn reshape(&mut self, v: Value, pattern: &[i64]) -> Result<Value> {
        let shape = self.i64s(pattern)?;
        builtin::reshape(self, v, shape)
    }
    /// Puts the axes into this order.
    pub fn transpose(&mut self, v: Value, order: &[i64]) -> Result<Value> {
        let order = self.i64s(order)?;
        builtin::transpose(self, v, order)
    }
    /// Puts in axes of size 1.
    pub fn unsqueeze(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let axes = self.i64s(axes)?;
        builtin::unsqueeze(self, v, axes)
    }
    /// Takes out axes of size 1.
    pub fn squeeze(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let axes = self.i64s(axes)?;
        builtin::squeeze(self, v, axes)
    }
    /// Joins values on an axis.
    pub fn concat(&mut self, values: &[Value], axis: i64) -> Result<Value> {
        match values {
            [one] => Ok(*one),
            _ => builtin::concat(self, values, axis),
        }
    }
}
