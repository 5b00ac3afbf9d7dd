//! Translates a graph node by node. A sub-graph is a scope inside a scope: a name it does not have itself is looked up
//! outside; a constant found there is shared, anything else becomes a further parameter of the body.

use crate::attributes;
use crate::budget::Budget;
use crate::decoded::node_name;
use crate::file::Source;
use crate::functions::Functions;
use crate::imports::Imports;
use crate::order::in_order;
use crate::tensor::{dense, element_type, tensor};
use crate::types;
use crate::unknown;
use crate::wire::{AttributeProto, GraphProto, NodeProto, ValueInfoProto};
use carafe_frontend::{
    Explained, Given, Host, Item, NodeCx, Origin, Outputs, ReadRequest, RuleSet, SourceNode, SubModel, Unread, pack,
    trace_inputs, trace_outputs,
};
use carafe_graph::{AttrValue, Constant, Error, ErrorKind, Fact, ItemType, Model, NodeId, Registry, Result, Value};
use carafe_tensor::ElementType;
use prost::Message;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

/// Functions and sub-graphs inside of each other deeper than this are refused; a recursive function would never end.
const MAX_DEPTH: usize = 64;

/// No size, axis or count is larger, and rules may multiply a few of these.
const MOST_INT: u64 = 1 << 40;

/// What all scopes of one file share.
pub(crate) struct Context<'f> {
    pub source: &'f Source,
    pub rules: &'f RuleSet,
    pub functions: &'f Functions<'f>,
    pub budget: Budget,
    pub options: &'f ReadRequest<'f>,
    /// Whether any node was kept for want of a rule.
    pub kept: Cell<bool>,
    /// Operations that are newer than the opset the model imports, as far as they were warned of.
    pub newer: RefCell<BTreeSet<String>>,
    /// Attributes that users' rules left.
    pub unread: Unread,
}

impl Context<'_> {
    // Once for each operation.
    fn warn_of_newer(&self, node: &str, source: &SourceNode, first: i64) {
        if self.newer.borrow_mut().insert(shown_type(source)) {
            let (ty, version) = (shown_type(source), source.version);
            self.options.log.warn(format!(
                "node `{node}`: {ty} exists from opset {first} on, the model imports {version}; it is taken as of opset {first}"
            ));
        }
    }
}

/// One graph being translated.
pub(crate) struct Scope<'f, 'o> {
    cx: &'f Context<'f>,
    imports: Imports,
    outer: Option<&'o mut (dyn Host + 'o)>,
    model: Model,
    names: HashMap<String, Item>,
    captured: Vec<(Value, usize)>,
    /// Sub-graphs of the node at hand, by attribute name.
    graphs: Vec<(String, GraphProto)>,
    /// Function calls around the node at hand, in this scope.
    calls: usize,
    /// Function calls and sub-graphs around the node at hand, outer scopes included.
    depth: usize,
    /// Types the file declares for values, where operations without a rule are kept.
    declared: HashMap<String, ItemType>,
}

impl<'f, 'o> Scope<'f, 'o> {
    pub(crate) fn new(cx: &'f Context<'f>, imports: Imports, outer: Option<&'o mut (dyn Host + 'o)>) -> Scope<'f, 'o> {
        Scope {
            cx,
            imports,
            outer,
            model: Model::default(),
            names: HashMap::new(),
            captured: vec![],
            graphs: vec![],
            calls: 0,
            depth: 0,
            declared: HashMap::new(),
        }
    }

    /// Translates a whole graph; parameters get the given types where there are any.
    pub(crate) fn graph(mut self, graph: &GraphProto, given: &[Given]) -> Result<SubModel> {
        self.model.name = graph.name.clone().unwrap_or_default();
        self.initializers(graph)?;
        let free = graph.input.iter().filter(|i| !self.names.contains_key(i.name.as_deref().unwrap_or("")));
        let mut free: Vec<_> = free.collect();
        if self.outer.is_none() {
            free.retain(|input| !self.is_hidden(input, &graph.node));
        }
        for (i, input) in free.into_iter().enumerate() {
            let name = input.name.as_deref().unwrap_or("");
            let ty = match given.get(i) {
                Some(Given::Apart(list)) => {
                    let item = self.parameters(name, list)?;
                    self.declare(name, item)?;
                    continue;
                }
                Some(Given::Whole(ty)) if ty.is_packed() => types::refine(ty, &types::of_value("input", input)?),
                Some(Given::Whole(ty)) => ty.clone(),
                None => types::of_value("input", input)?,
            };
            let fact = ty.fact();
            let v = self.model.parameter(name, fact.ty, fact.shape)?;
            if ty.is_packed() && self.outer.is_none() {
                self.model.set_packed_type(v.node, &ty);
            }
            self.declare(name, Item::of(v, ty))?;
        }
        if self.cx.options.keep_unknown {
            let values = graph.value_info.iter().chain(&graph.output);
            self.declared = values.filter_map(|v| Some((v.name.clone()?, types::of_value("value", v).ok()?))).collect();
        }
        self.nodes(&graph.node)?;
        let mut outputs = vec![];
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or("");
            let item = self.resolve(name)?;
            let item = item.ok_or_else(|| Error::invalid(format!("output `{name}` is produced by nothing")))?;
            outputs.push(item.clone());
            match self.outer {
                Some(_) => self.inner_output(name, item)?,
                None => self.output(name, item, types::of_value("output", output)?)?,
            }
        }
        Ok(SubModel { model: self.model, captured: self.captured, outputs })
    }

    // A parameter for each element of a sequence.
    fn parameters(&mut self, name: &str, list: &[ItemType]) -> Result<Item> {
        let mut items = vec![];
        for (i, ty) in list.iter().enumerate() {
            let fact = ty.fact();
            let v = self.model.parameter(&format!("{name}/{i}"), fact.ty, fact.shape)?;
            items.push(Item::of(v, ty.clone()));
        }
        Ok(Item::Sequence(items))
    }

    fn declare(&mut self, name: &str, item: Item) -> Result<()> {
        match self.names.insert(name.to_string(), item) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("two inputs are named `{name}`"))),
        }
    }

    // A node that makes what an input is named like: everybody reads the node, so the input has no effect.
    fn is_hidden(&self, input: &ValueInfoProto, nodes: &[NodeProto]) -> bool {
        let name = input.name.as_deref().unwrap_or("");
        let hidden = !name.is_empty() && nodes.iter().any(|n| n.output.iter().any(|o| o == name));
        if hidden {
            self.cx.options.log.warn(format!("input `{name}` is produced by a node as well; the input is left out"));
        }
        hidden
    }

    fn initializers(&mut self, graph: &GraphProto) -> Result<()> {
        for t in &graph.initializer {
            let name = t.name.as_deref().unwrap_or("");
            let v = self.model.constant(name, tensor(t, self.cx.source)?)?;
            self.model.add_tensor_name(v, name);
            self.initializer(name, v)?;
        }
        for t in &graph.sparse_initializer {
            let name = t.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or("");
            let v = self.model.constant(name, dense(t, self.cx.source)?)?;
            self.initializer(name, v)?;
        }
        Ok(())
    }

    fn initializer(&mut self, name: &str, v: Value) -> Result<()> {
        match self.names.insert(name.to_string(), v.into()) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("two initializers are named `{name}`"))),
        }
    }

    fn nodes(&mut self, nodes: &[NodeProto]) -> Result<()> {
        if let Some(name) = nodes.iter().flat_map(|n| &n.output).find(|o| !o.is_empty() && self.names.contains_key(*o))
        {
            return Err(Error::invalid(format!("`{name}` is produced twice")));
        }
        let is_outermost = self.depth == 0;
        for (done, i) in in_order(nodes)?.into_iter().enumerate() {
            if is_outermost {
                self.cx.options.progress.tell(done, nodes.len(), "nodes translated");
            }
            let node = &nodes[i];
            self.node(node).map_err(|e| e.at(place(node, &self.imports)))?;
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeProto) -> Result<()> {
        // Names grow with every call around them.
        self.cx.budget.spend_bytes(64 + node.name.as_deref().map_or(0, str::len))?;
        let mut source = self.source_node(node)?;
        let found = self.cx.rules.find(&source.domain, &source.op_type, source.version);
        // A user's rule stands in front of the model's own function of that name, a built-in rule behind it.
        if self.cx.functions.get(node).is_some() && !self.cx.rules.is_user(&source.domain, &source.op_type) {
            return self.call(node, &source);
        }
        if let Some(first) = found.as_ref().and_then(|f| f.newer) {
            self.cx.warn_of_newer(&node_name(node), &source, first);
            source.version = first;
        }
        let before = self.model.slots();
        let origin = found.as_ref().map(|f| f.origin);
        trace_inputs(&self.cx.options.log, &self.model, &source, origin.as_ref(), |name| self.names.get(name));
        let unread = &self.cx.unread;
        let outputs = match found {
            Some(found) => {
                let mut cx = NodeCx::new(self, &source);
                (found.translate)(&mut cx).and_then(|outputs| {
                    if found.origin == Origin::BuiltIn {
                        cx.check_inputs()?;
                    }
                    let left = cx.finish(&outputs);
                    unread.judge(&source, &found.origin, &left).map(|()| outputs)
                })
            }
            None => Err(Error::unsupported("there is no rule for this operation")),
        };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            // Behind an unknown operation a rule often fails for want of a shape; its node is shown all the same.
            Err(e) if self.cx.options.keep_unknown && (self.cx.kept.get() || e.kind() == ErrorKind::Unsupported) => {
                self.keep(node, &source, before)?
            }
            Err(e) => return Err(e),
        };
        trace_outputs(&self.cx.options.log, &self.model, &source, &outputs.0);
        if self.cx.options.explain {
            self.explain(node, &source, origin, before);
        }
        self.bind(&source, outputs)
    }

    fn explain(&mut self, node: &NodeProto, source: &SourceNode, origin: Option<Origin<'_>>, first_slot: usize) {
        let mut origin = origin.unwrap_or(Origin::Nobody);
        if let (Some(_), Origin::User { hides, .. }) = (self.cx.functions.get(node), &mut origin) {
            *hides = Some("the model's own function");
        }
        Explained::new(&node_name(node), &shown_type(source), &origin).attach(&mut self.model, first_slot);
    }

    fn keep(&mut self, node: &NodeProto, source: &SourceNode, first_slot: usize) -> Result<Outputs> {
        self.cx.kept.set(true);
        unknown::forget(&mut self.model, first_slot, self.names.values())?;
        let inputs = source.inputs.iter().filter(|n| !n.is_empty());
        let found = inputs.map(|name| {
            let item = self.resolve(name)?;
            item.ok_or_else(|| Error::invalid(format!("reads `{name}`, which nothing produces")))
        });
        let items = found.collect::<Result<Vec<_>>>()?;
        let outputs = source.outputs.iter().map(|name| self.declared.get(name).cloned());
        let outputs = outputs.map(|ty| ty.unwrap_or(ItemType::Unknown)).collect();
        unknown::keep(&mut self.model, node, source, &items, outputs)
    }

    fn bind(&mut self, node: &SourceNode, outputs: Outputs) -> Result<()> {
        let wanted = node.outputs.iter().rposition(|n| !n.is_empty()).map_or(0, |i| i + 1);
        if outputs.0.len() < wanted {
            return Err(Error::unsupported(format!("gives {} outputs, the model reads {wanted}", outputs.0.len())));
        }
        for (name, item) in node.outputs.iter().zip(outputs.0).filter(|(n, _)| !n.is_empty()) {
            if let Item::Tensor(value) | Item::Packed { value, .. } = item {
                self.model.add_tensor_name(value, name);
            }
            self.names.insert(name.clone(), item);
        }
        Ok(())
    }

    fn source_node(&mut self, node: &NodeProto) -> Result<SourceNode> {
        let domain = types::domain(node.domain.as_deref());
        let op_type = node.op_type.clone().unwrap_or_default();
        let mut source = SourceNode {
            name: node.name.clone().unwrap_or_default(),
            version: self.imports.version(&domain),
            domain,
            op_type,
            inputs: node.input.clone(),
            outputs: node.output.clone(),
            ..SourceNode::default()
        };
        self.graphs.clear();
        for a in &node.attribute {
            let name = a.name.clone().unwrap_or_default();
            let value = attributes::value(a, self.cx.source).map_err(|e| e.at(format!("attribute `{name}`")))?;
            match value {
                Some(AttrValue::Int(i)) if i.unsigned_abs() > MOST_INT && is_bounded(&source) => {
                    return Err(Error::invalid(format!("attribute `{name}` = {i} is beyond any size or axis")));
                }
                Some(v) => source.attrs.set(name, v),
                None => {
                    if let Some(g) = &a.g {
                        self.graphs.push((name.clone(), (**g).clone()));
                        source.graphs.push(name);
                    }
                }
            }
        }
        Ok(source)
    }

    // Translates the body of a model-local function in place of its call.
    fn call(&mut self, node: &NodeProto, source: &SourceNode) -> Result<()> {
        let Some(function) = self.cx.functions.get(node) else { return Ok(()) };
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!("functions call each other deeper than {MAX_DEPTH}")));
        }
        self.cx.budget.spend_bytes(function.encoded_len())?;
        let mut names = HashMap::new();
        for (formal, actual) in function.input.iter().zip(&node.input) {
            let item = if actual.is_empty() { Some(Item::Nothing) } else { self.resolve(actual)? };
            let item = item.ok_or_else(|| Error::invalid(format!("reads `{actual}`, which nothing produces")))?;
            names.insert(formal.clone(), item);
        }
        for formal in function.input.iter().skip(node.input.len()) {
            names.insert(formal.clone(), Item::Nothing);
        }
        let prefix = if source.name.is_empty() { &source.op_type } else { &source.name };
        let nodes = crate::functions::bound(function, &node.attribute, prefix);
        let imports = std::mem::replace(&mut self.imports, Imports::of(&function.opset_import));
        let names = std::mem::replace(&mut self.names, names);
        self.calls += 1;
        self.depth += 1;
        let done = self.nodes(&nodes);
        self.depth -= 1;
        self.calls -= 1;
        let inner = std::mem::replace(&mut self.names, names);
        self.imports = imports;
        done?;
        let outputs = function.output.iter().take(node.output.len()).map(|name| {
            inner.get(name).cloned().ok_or_else(|| Error::invalid(format!("function output `{name}` is not produced")))
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        self.bind(source, Outputs(outputs))
    }

    // The tensors of a sub-graph's output, each a result.
    fn inner_output(&mut self, name: &str, item: Item) -> Result<()> {
        match item {
            Item::Tensor(value) | Item::Packed { value, .. } => self.result(name, value).map(|_| ()),
            Item::Sequence(items) => {
                items.into_iter().enumerate().try_for_each(|(i, item)| self.inner_output(&format!("{name}/{i}"), item))
            }
            Item::Nothing => Ok(()),
        }
    }

    // An output of the model. The tensors of a sequence that is known one by one stay apart, so that nothing but numbered
    // operations is needed; what is left of sequences and optionals is packed.
    fn output(&mut self, name: &str, item: Item, declared: ItemType) -> Result<()> {
        match item {
            Item::Tensor(v) => self.result(name, v).map(|_| ()),
            Item::Sequence(items) if !items.is_empty() && items.iter().all(|i| matches!(i, Item::Tensor(_))) => {
                for (i, item) in items.into_iter().enumerate() {
                    let Item::Tensor(v) = item else { continue };
                    let result = self.result(&format!("{name}/{i}"), v)?;
                    self.model.set_part_of(result, name);
                }
                Ok(())
            }
            item => {
                let found = item.ty(&self.model)?;
                let ty = match (&found, &declared) {
                    // A value that may be absent for all that is known, where the model promises that it is there.
                    (ItemType::Optional(inner), ItemType::Sequence(_)) => types::refine(inner, &declared),
                    (ItemType::Optional(inner), ItemType::Tensor(ty, _)) if !ty.is_dynamic() => (**inner).clone(),
                    (_, declared) => types::refine(&found, declared),
                };
                let value = pack(&mut self.model, &format!("{name}/packed"), &item, &ty)?;
                let result = self.result(name, value)?;
                if ty.is_packed() {
                    self.model.set_packed_type(result, &ty);
                }
                Ok(())
            }
        }
    }

    fn result(&mut self, name: &str, value: Value) -> Result<NodeId> {
        let id = self.model.result(&format!("{name}/sink_port_0"), value)?;
        self.model.add_tensor_name(id.into(), name);
        Ok(id)
    }

    fn import(&mut self, item: Item) -> Result<Item> {
        Ok(match item {
            Item::Nothing => Item::Nothing,
            Item::Sequence(items) => Item::Sequence(items.into_iter().map(|i| self.import(i)).collect::<Result<_>>()?),
            Item::Tensor(v) => self.capture(v)?.into(),
            Item::Packed { value, ty } => Item::Packed { value: self.capture(value)?, ty },
        })
    }

    // An outer value in this scope.
    fn capture(&mut self, v: Value) -> Result<Value> {
        let outer = self.outer.as_deref().ok_or_else(|| Error::invalid("a value comes from nowhere"))?;
        let node = outer.model().node(v.node);
        if let Some(c) = node.op().get::<Constant>() {
            let (name, tensor) = (node.name().to_string(), c.tensor().clone());
            return self.model.constant(&name, tensor);
        }
        let fact = outer.model().fact(v).clone();
        let name = format!("captured/{}", self.captured.len());
        let parameter = self.model.parameter(&name, fact.ty, fact.shape)?;
        self.captured.push((v, self.model.parameters().len() - 1));
        Ok(parameter)
    }
}

impl Host for Scope<'_, '_> {
    fn model(&self) -> &Model {
        &self.model
    }
    fn model_mut(&mut self) -> &mut Model {
        &mut self.model
    }
    fn resolve(&mut self, name: &str) -> Result<Option<Item>> {
        if let Some(item) = self.names.get(name) {
            return Ok(Some(item.clone()));
        }
        // Inside a function only its own names exist.
        let outer = if self.calls == 0 { self.outer.as_deref_mut() } else { None };
        let Some(found) = outer.map(|o| o.resolve(name)).transpose()?.flatten() else { return Ok(None) };
        let item = self.import(found)?;
        self.names.insert(name.to_string(), item.clone());
        Ok(Some(item))
    }
    fn body(&mut self, attribute: &str, parameters: &[Fact]) -> Result<SubModel> {
        let types: Vec<ItemType> = parameters.iter().map(ItemType::of).collect();
        self.body_of(attribute, &types)
    }
    fn body_of(&mut self, attribute: &str, parameters: &[ItemType]) -> Result<SubModel> {
        let given: Vec<Given> = parameters.iter().map(|ty| Given::Whole(ty.clone())).collect();
        self.body_given(attribute, &given)
    }
    fn body_given(&mut self, attribute: &str, parameters: &[Given]) -> Result<SubModel> {
        let at = self.graphs.iter().position(|(n, _)| n == attribute);
        let at = at.ok_or_else(|| Error::invalid(format!("attribute `{attribute}` is required and missing")))?;
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!("functions and sub-graphs are nested deeper than {MAX_DEPTH}")));
        }
        let graph = self.graphs[at].1.clone();
        self.cx.budget.spend_bytes(graph.encoded_len())?;
        let graphs = std::mem::take(&mut self.graphs);
        let (cx, imports, depth) = (self.cx, self.imports.clone(), self.depth + 1);
        let mut inner = Scope::new(cx, imports, Some(self));
        inner.depth = depth;
        let done = inner.graph(&graph, parameters);
        self.graphs = graphs;
        done.map_err(|e| e.at(format!("`{attribute}`")))
    }
    fn warn(&self, text: &str) {
        self.cx.options.log.warn(text);
    }
    fn declared_input(&self, attribute: &str, input: usize) -> Option<ItemType> {
        let (_, graph) = self.graphs.iter().find(|(n, _)| n == attribute)?;
        types::of_value("input", graph.input.get(input)?).ok()
    }
    fn registry(&self) -> Option<&Registry> {
        self.cx.options.registry
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        element_type(i32::try_from(code).ok()?).ok()
    }
}

// `Relu`, or `domain::Type`.
fn shown_type(source: &SourceNode) -> String {
    match source.domain.as_str() {
        "" => source.op_type.clone(),
        domain => format!("{domain}::{}", source.op_type),
    }
}

// Single integers of the known domains are sizes, axes, counts and switches; a constant may be any number.
fn is_bounded(node: &SourceNode) -> bool {
    let known = matches!(node.domain.as_str(), "" | "ai.onnx.ml" | "com.microsoft" | "ai.onnx.preview.training");
    known && node.op_type != "Constant"
}

/// `node `name` (Op, opset N)`, the way errors speak of it.
pub(crate) fn place(node: &NodeProto, imports: &Imports) -> String {
    let domain = types::domain(node.domain.as_deref());
    let op_type = node.op_type.as_deref().unwrap_or("");
    let name = node_name(node);
    let version = imports.version(&domain);
    match domain.as_str() {
        "" => format!("node `{name}` ({op_type}, opset {version})"),
        d => format!("node `{name}` ({op_type}, {d} {version})"),
    }
}

/// A reference to an attribute of the calling node stands where a value is expected.
pub(crate) fn is_reference(a: &AttributeProto) -> bool {
    a.ref_attr_name.as_deref().is_some_and(|n| !n.is_empty())
}
