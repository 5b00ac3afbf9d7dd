//! One graph being translated. A sub-graph is a scope inside a scope: a name it does not have itself is looked up outside; a
//! constant found there is shared, anything else becomes a further parameter of the body.

use crate::cut_off::mark_cut_off;
use crate::item::{Item, pack};
use crate::node_cx::{Given, Host, SubModel};
use crate::order::in_order;
use crate::source::{SourceGraph, SourceNode, SourceTensor, shown};
use crate::translate::Context;
use carafe_graph::{Constant, Error, Fact, ItemType, Model, NodeId, Registry, Result, Value};
use carafe_tensor::ElementType;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Functions and sub-graphs inside of each other deeper than this are refused; a recursive function would never end.
pub(crate) const MAX_DEPTH: usize = 64;

/// One graph being translated.
pub(crate) struct Scope<'f, 'o> {
    pub(crate) cx: &'f Context<'f>,
    pub(crate) outer: Option<&'o mut (dyn Host + 'o)>,
    pub(crate) model: Model,
    pub(crate) names: HashMap<String, Item>,
    captured: Vec<(Value, usize)>,
    /// Sub-graphs of the node at hand, by attribute name.
    pub(crate) graphs: Vec<(String, Rc<SourceGraph>)>,
    /// Tensors of the node at hand, and the constants of those that were asked for.
    pub(crate) stored: Vec<(SourceTensor, Option<Item>)>,
    /// Function calls around the node at hand, in this scope.
    pub(crate) calls: usize,
    /// Function calls and sub-graphs around the node at hand, outer scopes included.
    pub(crate) depth: usize,
    /// Types the file declares for values, where operations without a rule are kept.
    pub(crate) declared: HashMap<String, ItemType>,
    aliases: HashMap<String, String>,
    pub(crate) second_names: HashMap<String, Vec<String>>,
    /// What the node before the one at hand is called.
    pub(crate) previous: String,
}

impl<'f, 'o> Scope<'f, 'o> {
    pub(crate) fn new(cx: &'f Context<'f>, outer: Option<&'o mut (dyn Host + 'o)>) -> Scope<'f, 'o> {
        Scope {
            cx,
            outer,
            model: Model::default(),
            names: HashMap::new(),
            captured: vec![],
            graphs: vec![],
            stored: vec![],
            calls: 0,
            depth: 0,
            declared: HashMap::new(),
            aliases: HashMap::new(),
            second_names: HashMap::new(),
            previous: String::new(),
        }
    }

    /// Translates a whole graph; parameters get the given types where there are any.
    pub(crate) fn graph(mut self, graph: &SourceGraph, given: &[Given]) -> Result<SubModel> {
        self.model.name = graph.name.clone();
        self.aliases = graph.aliases.clone();
        self.second_names = graph.second_names.clone();
        self.tensors(&graph.tensors)?;
        self.inputs(graph, given)?;
        if self.cx.request.keep_unknown {
            self.declared = graph.types.clone();
        }
        self.nodes(graph, &graph.nodes)?;
        let outputs = self.outputs(graph)?;
        Ok(SubModel { model: self.model, captured: self.captured, outputs })
    }

    pub(crate) fn tensors(&mut self, tensors: &[SourceTensor]) -> Result<()> {
        for t in tensors {
            let v = self.model.constant(shown(&t.name), t.tensor()?)?;
            if !shown(&t.name).is_empty() {
                self.model.add_tensor_name(v, shown(&t.name));
            }
            if self.names.insert(t.name.clone(), v.into()).is_some() {
                return Err(Error::invalid(format!("two initializers are named `{}`", t.name)));
            }
        }
        Ok(())
    }

    fn inputs(&mut self, graph: &SourceGraph, given: &[Given]) -> Result<()> {
        let mut free: Vec<_> = graph.inputs.iter().filter(|i| !self.names.contains_key(&i.name)).collect();
        if self.outer.is_none() && !free.is_empty() {
            // Everybody reads the node that makes what an input is named like, so the input has no effect.
            let made: HashSet<&str> = graph.nodes.iter().flat_map(|n| &n.outputs).map(String::as_str).collect();
            let log = &self.cx.request.log;
            free.retain(|i| {
                let is_hidden = !i.name.is_empty() && made.contains(i.name.as_str());
                if is_hidden {
                    log.warn(format!("input `{}` is produced by a node as well; the input is left out", i.name));
                }
                !is_hidden
            });
        }
        // Captured parameters follow those that the graph declares.
        let captured = free.iter().zip(given).filter_map(|(input, given)| match given {
            Given::Outer(item) => Some((input.name.clone(), item.clone())),
            _ => None,
        });
        let captured: Vec<(String, Item)> = captured.collect();
        for (i, input) in free.into_iter().enumerate() {
            let ty = match given.get(i) {
                Some(Given::Outer(_)) => continue,
                Some(Given::Apart(list)) => {
                    let item = self.parameters(&input.name, list)?;
                    self.declare(&input.name, item)?;
                    continue;
                }
                Some(Given::Whole(ty)) if ty.is_packed() => refine(ty, &input.ty.clone()?),
                Some(Given::Whole(ty)) => ty.clone(),
                None => input.ty.clone()?,
            };
            let fact = ty.fact();
            let name = shown(&input.name);
            let v = self.model.parameter(input.label.as_deref().unwrap_or(name), fact.ty, fact.shape)?;
            if input.label.is_some() {
                self.model.set_tensor_names(v, [name.to_string()].into());
            }
            input.names.iter().for_each(|name| self.model.add_tensor_name(v, name));
            if input.cut_off {
                mark_cut_off(&mut self.model, v.node);
            }
            if ty.is_packed() && self.outer.is_none() {
                self.model.set_packed_type(v.node, &ty);
            }
            self.declare(&input.name, Item::of(v, ty))?;
        }
        for (name, item) in captured {
            let item = self.import(item)?;
            self.declare(&name, item)?;
        }
        Ok(())
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

    /// Translates nodes that belong to the graph, or to a function that is called there.
    pub(crate) fn nodes(&mut self, graph: &SourceGraph, nodes: &[SourceNode]) -> Result<()> {
        let mut made = nodes.iter().flat_map(|n| &n.outputs);
        if let Some(name) = made.find(|o| !o.is_empty() && self.names.contains_key(*o)) {
            return Err(Error::invalid(format!("`{}` is produced twice", shown(name))));
        }
        let is_outermost = self.depth == 0;
        let what = format!("{}s translated", self.cx.dialect.words().node);
        for (done, i) in in_order(graph, nodes)?.into_iter().enumerate() {
            if is_outermost {
                self.cx.request.progress.tell(done, nodes.len(), &what);
            }
            let node = &nodes[i];
            self.node(node).map_err(|e| e.at(self.cx.dialect.location(node)))?;
            if is_outermost && self.cx.request.explain {
                self.previous = node.label().to_string();
            }
        }
        Ok(())
    }

    fn outputs(&mut self, graph: &SourceGraph) -> Result<Vec<Item>> {
        let mut items = vec![];
        let Some(outputs) = &graph.outputs else {
            for name in graph.output_names() {
                let Some(item) = self.names.get(name).filter(|i| !matches!(i, Item::Nothing)).cloned() else {
                    continue;
                };
                items.push(item.clone());
                self.output(shown(name), item, &ItemType::Unknown)?;
            }
            let words = self.cx.dialect.words();
            return match items.is_empty() {
                false => Ok(items),
                true => Err(Error::invalid(format!(
                    "the {} has no outputs: every {} is read by some {}",
                    words.graph, words.value, words.node
                ))),
            };
        };
        for output in outputs {
            let name = output.label.as_deref().unwrap_or(shown(&output.name));
            let item = self.resolve(&output.name)?;
            let item = item.ok_or_else(|| Error::invalid(format!("output `{name}` is produced by nothing")))?;
            items.push(item.clone());
            match self.outer {
                Some(_) => self.inner_output(name, item)?,
                None => {
                    let first = self.model.results().len();
                    // A file has names of values only, not of results.
                    if let Item::Tensor(value) = item {
                        let further = output.label.iter().chain(&output.names);
                        further.for_each(|name| self.model.add_tensor_name(value, name));
                    }
                    self.output(name, item, &output.ty.clone()?)?;
                    if let [result] = self.model.results()[first..] {
                        output.names.iter().for_each(|name| self.model.add_tensor_name(result.into(), name));
                    }
                }
            }
        }
        Ok(items)
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
    fn output(&mut self, name: &str, item: Item, declared: &ItemType) -> Result<()> {
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
                let ty = match (&found, declared) {
                    // A value that may be absent for all that is known, where the model promises that it is there.
                    (ItemType::Optional(inner), ItemType::Sequence(_)) => refine(inner, declared),
                    (ItemType::Optional(inner), ItemType::Tensor(ty, _)) if !ty.is_dynamic() => (**inner).clone(),
                    (_, declared) => refine(&found, declared),
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
        if let Some((_, at)) = self.captured.iter().find(|(captured, _)| *captured == v) {
            return Ok(self.model.parameters()[*at].into());
        }
        let fact = outer.model().fact(v).clone();
        let name = format!("captured/{}", self.captured.len());
        let parameter = self.model.parameter(&name, fact.ty, fact.shape)?;
        self.captured.push((v, self.model.parameters().len() - 1));
        Ok(parameter)
    }

    // The constant of a tensor of the node at hand.
    fn stored(&mut self, name: &str) -> Result<Option<Item>> {
        let Some((tensor, made)) = self.stored.iter_mut().find(|(t, _)| t.name == name) else { return Ok(None) };
        if made.is_none() {
            let value = tensor
                .tensor()
                .map_err(|e| e.at(format!("stored {} `{}`", self.cx.dialect.words().value, tail(name))))?;
            *made = Some(self.model.constant(shown(name), value)?.into());
        }
        Ok(made.clone())
    }
}

// The last part of a name.
fn tail(name: &str) -> &str {
    shown(name).rsplit('/').next().unwrap_or("")
}

/// What is declared where it adds to what is known of the content of a sequence or an optional.
fn refine(known: &ItemType, declared: &ItemType) -> ItemType {
    match (known, declared) {
        (ItemType::Unknown, declared) => declared.clone(),
        (ItemType::Sequence(a), ItemType::Sequence(b)) => ItemType::sequence(refine(a, b)),
        (ItemType::Optional(a), ItemType::Optional(b)) => ItemType::optional(refine(a, b)),
        (known, _) => known.clone(),
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
        if let Some(item) = self.stored(name)? {
            return Ok(Some(item));
        }
        if let Some(item) = self.names.get(name) {
            return Ok(Some(item.clone()));
        }
        // Inside a function only its own names exist.
        if self.calls > 0 {
            return Ok(None);
        }
        if let Some(item) = self.aliases.get(name).and_then(|of| self.names.get(of)).cloned() {
            if let Item::Tensor(value) | Item::Packed { value, .. } = item {
                self.model.add_tensor_name(value, name);
            }
            self.names.insert(name.to_string(), item.clone());
            return Ok(Some(item));
        }
        let found = self.outer.as_deref_mut().map(|o| o.resolve(name)).transpose()?.flatten();
        let Some(found) = found else { return Ok(None) };
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
        let graph = self.graphs.iter().find(|(n, _)| n == attribute).map(|(_, g)| g.clone());
        let graph = graph.ok_or_else(|| Error::invalid(format!("attribute `{attribute}` is required and missing")))?;
        if self.depth >= MAX_DEPTH {
            return Err(Error::invalid(format!("functions and sub-graphs are nested deeper than {MAX_DEPTH}")));
        }
        self.cx.budget.spend_bytes(graph.weight())?;
        let (cx, depth) = (self.cx, self.depth + 1);
        let mut inner = Scope::new(cx, Some(self));
        inner.depth = depth;
        inner.graph(&graph, parameters).map_err(|e| e.at(format!("`{attribute}`")))
    }
    fn warn(&self, text: &str) {
        self.cx.request.log.warn(text);
    }
    fn declared_input(&self, attribute: &str, input: usize) -> Option<ItemType> {
        let (_, graph) = self.graphs.iter().find(|(n, _)| n == attribute)?;
        graph.inputs.get(input)?.ty.clone().ok()
    }
    fn registry(&self) -> Option<&Registry> {
        self.cx.request.registry
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        self.cx.dialect.element_type(code)
    }
}
