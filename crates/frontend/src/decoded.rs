//! The graph as decoded, as a model whose nodes are `FrameworkNode`s, for rewrites that run before translation. What such a
//! node cannot say is a marker: an input that is left out comes from `Nothing`, a value that only a sub-graph reads goes
//! through `Captured`, and an attribute without a value of its own, such as a sub-graph, is a text like `onnx attribute 3`,
//! which a rewrite may hand on to another node. Tensors that are stored with a node are constants that it reads.

use crate::dialect::Dialect;
use crate::order::{captured, in_order};
use crate::source::{Held, SourceGraph, SourceNode, SourceValue, shown};
use carafe_graph::{AttrValue, Error, FrameworkNode, ItemType, Model, NodeId, Op, Result, Value};
use std::collections::HashMap;

/// Type of a node whose output stands for an input that is left out.
pub(crate) const NOTHING: &str = "Nothing";
/// Type of a node that passes on what a sub-graph of its user reads; its name is the name the sub-graph knows.
pub(crate) const CAPTURED: &str = "Captured";
/// Opset of both.
pub(crate) const MARKER: &str = "carafe.decoded";

/// Whether an operation of a decoded graph is a marker: the file has no such node, though its name may be that of one.
pub fn is_marker(op: &dyn Op) -> bool {
    op.get::<FrameworkNode>().is_some_and(|n| n.opset == MARKER)
}

/// A graph as a model, and what the file has for each part.
pub(crate) struct Decoded<'d> {
    pub(crate) dialect: &'d dyn Dialect,
    pub(crate) framework: &'d str,
    pub(crate) model: Model,
    pub(crate) nodes: HashMap<NodeId, SourceNode>,
    pub(crate) inputs: HashMap<NodeId, SourceValue>,
    /// Names that values had.
    pub(crate) keys: HashMap<Value, String>,
    /// Constants that are stored with a node, and that node.
    pub(crate) stored: HashMap<NodeId, NodeId>,
    /// Attributes behind texts.
    pub(crate) held: Vec<Held>,
    names: HashMap<String, Value>,
}

impl<'d> Decoded<'d> {
    /// Takes nodes, inputs and tensors out of a graph; the rest stays there.
    pub(crate) fn of(graph: &mut SourceGraph, dialect: &'d dyn Dialect, framework: &'d str) -> Result<Decoded<'d>> {
        let mut this = Decoded {
            dialect,
            framework,
            model: Model::new(graph.name.clone()),
            nodes: HashMap::new(),
            inputs: HashMap::new(),
            keys: HashMap::new(),
            stored: HashMap::new(),
            held: vec![],
            names: HashMap::new(),
        };
        for t in std::mem::take(&mut graph.tensors) {
            let v = this.model.constant(shown(&t.name), t.tensor()?)?;
            if !this.name(v, &t.name) {
                return Err(Error::invalid(format!("two initializers are named `{}`", t.name)));
            }
        }
        for input in std::mem::take(&mut graph.inputs) {
            if let Some(v) = this.names.get(&input.name) {
                match this.model.parameters().contains(&v.node) {
                    true => return Err(Error::invalid(format!("two inputs are named `{}`", input.name))),
                    false => continue,
                }
            }
            let fact = input.ty.clone()?.fact();
            let v = this.model.parameter(shown(&input.name), fact.ty, fact.shape)?;
            this.name(v, &input.name);
            this.inputs.insert(v.node, input);
        }
        let order = in_order(graph, &graph.nodes)?;
        let outputs: Vec<String> = graph.output_names().into_iter().map(str::to_string).collect();
        let mut nodes: Vec<Option<SourceNode>> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
        for node in order.into_iter().filter_map(|i| nodes[i].take()) {
            let location = dialect.location(&node);
            this.node(node, graph).map_err(|e| e.at(location))?;
        }
        for name in outputs {
            let shown = shown(&name);
            let v = this.names.get(graph.aliased(&name));
            let v = v.ok_or_else(|| Error::invalid(format!("output `{shown}` is produced by nothing")))?;
            this.model.result(shown, *v)?;
        }
        Ok(this)
    }

    // Answers whether the name was free.
    fn name(&mut self, v: Value, name: &str) -> bool {
        self.keys.insert(v, name.to_string());
        self.names.insert(name.to_string(), v).is_none()
    }

    fn node(&mut self, mut node: SourceNode, graph: &SourceGraph) -> Result<()> {
        if let Some(fault) = node.fault.take() {
            return Err(fault);
        }
        let mut inputs = vec![];
        let mut own = vec![];
        for name in &node.inputs {
            if let Some(t) = node.stored.iter().find(|t| t.name == *name) {
                let v = self.model.constant(shown(name), t.tensor()?)?;
                self.keys.insert(v, name.clone());
                own.push(v.node);
                inputs.push(v);
                continue;
            }
            inputs.push(match (name.as_str(), self.names.get(graph.aliased(name))) {
                ("", _) => self.model.add(NOTHING, FrameworkNode::new(MARKER, NOTHING), &[])?.into(),
                (_, Some(v)) => *v,
                (name, None) => {
                    return Err(Error::invalid(format!("reads `{}`, which nothing produces", shown(name))));
                }
            });
        }
        for name in captured(&node) {
            if let Some(v) = self.names.get(graph.aliased(name)) {
                let op = FrameworkNode::new(MARKER, CAPTURED);
                inputs.push(self.model.add(name, op, &[*v])?.into());
            }
        }
        let domain = if node.domain.is_empty() { self.dialect.words().domain } else { &node.domain };
        let mut op = FrameworkNode::new(domain, &node.op_type);
        op.attrs = node.attrs.clone();
        for (name, held) in &node.held {
            op.attrs.set(name, AttrValue::Text(format!("{} attribute {}", self.framework, self.held.len())));
            self.held.push(held.clone());
        }
        let known = |name: &String| graph.types.get(name).cloned().unwrap_or(ItemType::Unknown).fact();
        op.outputs = node.outputs.iter().map(known).map(|f| (f.ty, f.shape)).collect();
        let id = self.model.add(node.label(), op, &inputs)?;
        self.stored.extend(own.into_iter().map(|constant| (constant, id)));
        for (port, name) in node.outputs.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
            let v = Value { node: id, port };
            // The name belongs to the latest.
            if let Some(old) = node.in_place_of(name).and_then(|input| self.names.get(input)) {
                let mut names = self.model.output(*old).names.clone();
                names.remove(shown(name));
                self.model.set_tensor_names(*old, names);
            }
            if !shown(name).is_empty() {
                self.model.add_tensor_name(v, shown(name));
            }
            if !self.name(v, name) {
                return Err(Error::invalid(format!("`{}` is produced twice", shown(name))));
            }
        }
        self.nodes.insert(id, node);
        Ok(())
    }

    /// The attribute behind a text.
    pub(crate) fn held(&self, value: &AttrValue) -> Option<&Held> {
        let (AttrValue::Text(text) | AttrValue::Str(text)) = value else { return None };
        let number = text.strip_prefix(self.framework)?.strip_prefix(" attribute ")?;
        self.held.get(number.parse::<usize>().ok()?)
    }
}
