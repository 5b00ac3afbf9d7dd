//! The graph as decoded: a model whose nodes are `FrameworkNode`s, for rewrites that run before translation. What such a
//! node cannot say is a marker: an input that is left out comes from `Nothing`, a value that only a sub-graph reads goes
//! through `Captured`, and an attribute without a value of its own, such as a sub-graph, is the text `onnx attribute 3`,
//! which a rewrite may hand on to another node.

use crate::attributes;
use crate::encode::encode;
use crate::file::Source;
use crate::order::{captured, in_order};
use crate::tensor::{dense, tensor};
use crate::types;
use crate::wire::{AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};
use carafe_frontend::ReadRequest;
use carafe_graph::{
    AttrValue, Error, FrameworkNode, ItemType, Model, NodeId, Notes, Pass, Registry, Result, Value, run_passes,
};
use carafe_tensor::Tensor;
use std::collections::HashMap;
use std::sync::Arc;

/// Type of a node whose output stands for an input that is left out.
pub(crate) const NOTHING: &str = "Nothing";
/// Type of a node that passes on what a sub-graph of its user reads; its name is the name the sub-graph knows.
pub(crate) const CAPTURED: &str = "Captured";
/// Opset of both.
pub(crate) const MARKER: &str = "carafe.decoded";
/// The default domain, as these nodes spell it.
const DEFAULT_DOMAIN: &str = "ai.onnx";
/// How an attribute begins that stands for one of the file.
const HELD: &str = "onnx attribute ";

/// A stored tensor as the file has it.
pub(crate) enum Stored {
    Dense(Box<TensorProto>),
    Sparse(Box<SparseTensorProto>),
}

/// A graph as a model, and what the file said of each part.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(crate) model: Model,
    pub(crate) nodes: HashMap<NodeId, NodeProto>,
    pub(crate) inputs: HashMap<NodeId, ValueInfoProto>,
    pub(crate) constants: HashMap<NodeId, (Tensor, Stored)>,
    /// Attributes behind texts.
    pub(crate) held: Vec<AttributeProto>,
}

/// The graph as a model, for looking at it.
pub(crate) fn model(graph: GraphProto, source: &Source) -> Result<Model> {
    Ok(Decoded::of(graph, source)?.model)
}

/// The graph after the rewrites of the options.
pub(crate) fn rewrite(graph: GraphProto, source: &Source, options: &ReadRequest<'_>) -> Result<GraphProto> {
    let (outputs, value_info) = (graph.output.clone(), graph.value_info.clone());
    let mut decoded = Decoded::of(graph, source)?;
    let list: Vec<&dyn Pass> = options.decoded.iter().map(|p| &**p).collect();
    let mut notes = Notes::decoded().with_registry(Arc::new(Registry::new())).kept(options.log.is_debug());
    let done = run_passes(&mut decoded.model, &list, &mut notes);
    notes.lines.iter().for_each(|line| options.log.debug(|| line.clone()));
    done?;
    decoded.model.prune();
    let encoded = encode(decoded, &outputs, source).map_err(|e| e.at("the graph as rewritten before translation"))?;
    Ok(GraphProto { value_info, ..encoded })
}

impl Decoded {
    fn of(graph: GraphProto, source: &Source) -> Result<Decoded> {
        let mut this = Decoded { model: Model::new(graph.name.clone().unwrap_or_default()), ..Decoded::default() };
        let mut names = HashMap::new();
        for t in graph.initializer {
            let name = t.name.clone().unwrap_or_default();
            let value = tensor(&t, source)?;
            this.constant(&mut names, name, value, Stored::Dense(Box::new(t)))?;
        }
        for t in graph.sparse_initializer {
            let name = t.values.as_ref().and_then(|v| v.name.clone()).unwrap_or_default();
            let value = dense(&t, source)?;
            this.constant(&mut names, name, value, Stored::Sparse(Box::new(t)))?;
        }
        for input in graph.input {
            let name = input.name.clone().unwrap_or_default();
            if let Some(v) = names.get(&name) {
                match this.model.parameters().contains(&v.node) {
                    true => return Err(Error::invalid(format!("two inputs are named `{name}`"))),
                    false => continue,
                }
            }
            let fact = types::of_value("input", &input)?.fact();
            let v = this.model.parameter(&name, fact.ty, fact.shape)?;
            this.inputs.insert(v.node, input);
            names.insert(name, v);
        }
        let values = graph.value_info.iter().chain(&graph.output);
        let declared: HashMap<String, ItemType> =
            values.filter_map(|v| Some((v.name.clone()?, types::of_value("value", v).ok()?))).collect();
        for i in in_order(&graph.node)? {
            let node = &graph.node[i];
            let place = || format!("node `{}` ({})", node_name(node), node.op_type.as_deref().unwrap_or(""));
            this.node(node, &declared, &mut names, source).map_err(|e| e.at(place()))?;
        }
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or("");
            let v = names.get(name);
            let v = v.ok_or_else(|| Error::invalid(format!("output `{name}` is produced by nothing")))?;
            this.model.result(name, *v)?;
        }
        Ok(this)
    }

    fn constant(
        &mut self,
        names: &mut HashMap<String, Value>,
        name: String,
        value: Tensor,
        stored: Stored,
    ) -> Result<()> {
        let v = self.model.constant(&name, value.clone())?;
        self.constants.insert(v.node, (value, stored));
        match names.insert(name.clone(), v) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("two initializers are named `{name}`"))),
        }
    }

    fn node(
        &mut self,
        node: &NodeProto,
        declared: &HashMap<String, ItemType>,
        names: &mut HashMap<String, Value>,
        source: &Source,
    ) -> Result<()> {
        let mut inputs = vec![];
        for name in &node.input {
            inputs.push(match (name.as_str(), names.get(name)) {
                ("", _) => self.model.add(NOTHING, FrameworkNode::new(MARKER, NOTHING), &[])?.into(),
                (_, Some(v)) => *v,
                (name, None) => return Err(Error::invalid(format!("reads `{name}`, which nothing produces"))),
            });
        }
        for name in captured(node) {
            if let Some(v) = names.get(name) {
                let op = FrameworkNode::new(MARKER, CAPTURED);
                inputs.push(self.model.add(name, op, &[*v])?.into());
            }
        }
        let domain = types::domain(node.domain.as_deref());
        let domain = if domain.is_empty() { DEFAULT_DOMAIN.to_string() } else { domain };
        let mut op = FrameworkNode::new(domain, node.op_type.clone().unwrap_or_default());
        for a in &node.attribute {
            let value = self.attribute(a, source);
            op.attrs.set(a.name.clone().unwrap_or_default(), value);
        }
        let known = |name: &String| declared.get(name).cloned().unwrap_or(ItemType::Unknown).fact();
        op.outputs = node.output.iter().map(known).map(|f| (f.ty, f.shape)).collect();
        let id = self.model.add(node_name(node), op, &inputs)?;
        for (port, name) in node.output.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
            let v = Value { node: id, port };
            self.model.add_tensor_name(v, name);
            if names.insert(name.clone(), v).is_some() {
                return Err(Error::invalid(format!("`{name}` is produced twice")));
            }
        }
        self.nodes.insert(id, node.clone());
        Ok(())
    }

    // The value, or a text that stands for the attribute.
    fn attribute(&mut self, a: &AttributeProto, source: &Source) -> AttrValue {
        match attributes::value(a, source) {
            Ok(Some(value)) => value,
            // What is wrong with it is told when it is translated.
            Ok(None) | Err(_) => {
                self.held.push(a.clone());
                AttrValue::Text(format!("{HELD}{}", self.held.len() - 1))
            }
        }
    }

    /// The attribute of the file behind a text.
    pub(crate) fn held(&self, value: &AttrValue) -> Option<&AttributeProto> {
        let (AttrValue::Text(text) | AttrValue::Str(text)) = value else { return None };
        self.held.get(text.strip_prefix(HELD)?.parse::<usize>().ok()?)
    }
}

/// What a node is called: by its first output when it has no name.
pub(crate) fn node_name(node: &NodeProto) -> String {
    let name = node.name.as_deref().filter(|n| !n.is_empty());
    name.or(node.output.first().map(String::as_str)).unwrap_or("").to_string()
}
