//! Writes IR v11. Layers get their position as id: parameters in model order, then producers before consumers, sinks,
//! results in model order. What no result or sink needs is not written, as no reader would keep it.

mod body;
mod emit;
mod file;
mod info;
mod opset;
mod weights;

pub use file::write_file;
pub use weights::WeightPart;

use crate::read::MAX_BODY_DEPTH;
use crate::{Versions, WriteOptions, names};
use body::OuterPorts;
use carafe_graph::{AttrValue, Constant, Error, Fact, Model, Node, NodeId, ResultOp, RtInfo, RtTree};
use carafe_graph::{Result, Value};
use carafe_tensor::ElementType;
use emit::Emitter;
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use weights::Weights;

/// The text of the model and the bytes of its weights.
pub fn write_to(model: &Model, options: &WriteOptions) -> Result<(String, Vec<u8>)> {
    let mut weights = Vec::new();
    let text = write_text(model, options, &mut weights)?;
    Ok((text, weights))
}

/// The text of the model and its weights where they lie, not copied.
pub fn write_parts(model: &Model, options: &WriteOptions) -> Result<(String, Vec<WeightPart>)> {
    let mut nowhere = std::io::sink();
    let (text, weights) = write_with(model, options, &mut nowhere)?;
    Ok((text, weights.into_parts()))
}

/// Element types of values of the model, bodies included, that OpenVINO has no name for: it cannot read the file.
pub fn types_only_read_here(model: &Model) -> BTreeSet<ElementType> {
    let mut found = BTreeSet::new();
    let mut models = vec![model];
    while let Some(model) = models.pop() {
        for (_, node) in model.nodes() {
            found.extend(node.outputs().iter().map(|o| o.fact.ty).filter(|ty| !ty.is_in_openvino()));
            models.extend(node.op().bodies().into_iter().map(|(_, body)| &body.model));
        }
    }
    found
}

/// Streams the weights and returns the text.
fn write_text(model: &Model, options: &WriteOptions, weights: &mut dyn Write) -> Result<String> {
    Ok(write_with(model, options, weights)?.0)
}

fn write_with<'w>(model: &Model, options: &WriteOptions, weights: &'w mut dyn Write) -> Result<(String, Weights<'w>)> {
    let older = match options.versions {
        Versions::Current => None,
        Versions::Oldest | Versions::UpTo(_) => carafe_graph::oldest(model)?,
    };
    let model = older.as_ref().unwrap_or(model);
    if let Versions::UpTo(limit) = options.versions {
        opset::check(model, limit)?;
    }
    let mut writer =
        Writer { xml: Emitter::new(), weights: Weights::new(weights), keep_internal: options.keep_internal };
    writer.xml.open("net", &[("name", &model.name), ("version", "11")])?;
    writer.net(model, 0)?;
    let mut tree = model.rt_info.clone();
    tree.retain(|t| t.key != "version" && t.key != "__weights_path");
    if let Some(version) = &options.runtime_version {
        tree.retain(|t| t.key != "Runtime_version");
        tree.push(RtTree::leaf("Runtime_version", version));
    }
    info::write_net(&mut writer.xml, &tree)?;
    writer.xml.close("net");
    Ok((writer.xml.finish(), writer.weights))
}

#[derive(Debug)]
struct Writer<'w> {
    xml: Emitter,
    weights: Weights<'w>,
    keep_internal: bool,
}

impl Writer<'_> {
    /// `layers` and `edges` of a model or body.
    fn net(&mut self, model: &Model, depth: usize) -> Result<()> {
        if depth > MAX_BODY_DEPTH {
            return Err(Error::unsupported(format!("bodies are nested deeper than {MAX_BODY_DEPTH}")));
        }
        let order = layer_order(model)?;
        let ids: HashMap<NodeId, usize> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
        let mut edges: Vec<[usize; 4]> = vec![];
        // Output ports are numbered after the input ports.
        let mut first_outputs = Vec::with_capacity(order.len());
        self.xml.open("layers", &[])?;
        for (i, &id) in order.iter().enumerate() {
            let node = model.node(id);
            let outer = OuterPorts::of(node).map_err(|e| e.at(node.location()))?;
            self.layer(model, i, node, &outer, depth).map_err(|e| e.at(node.location()))?;
            first_outputs.push(outer.inputs.len());
            edges.extend(outer.inputs.iter().enumerate().map(|(input, v)| [ids[&v.node], v.port, i, input]));
        }
        edges.iter_mut().for_each(|edge| edge[1] += first_outputs[edge[0]]);
        self.xml.close("layers");
        edges.sort_unstable();
        self.xml.open("edges", &[])?;
        for edge in &edges {
            let [a, b, c, d] = edge.map(|n| n.to_string());
            self.xml.empty("edge", &[("from-layer", &a), ("from-port", &b), ("to-layer", &c), ("to-port", &d)])?;
        }
        self.xml.close("edges");
        Ok(())
    }

    fn layer(&mut self, model: &Model, id: usize, node: &Node, outer: &OuterPorts, depth: usize) -> Result<()> {
        let (op, id) = (node.op(), id.to_string());
        let is_result = op.is::<ResultOp>();
        let mut attributes = vec![("id", id.as_str()), ("name", node.name()), ("type", op.type_name())];
        attributes.push(("version", op.opset()));
        let output_names = match node.outputs().first() {
            Some(output) if is_result => names::join(&output.names)?,
            _ => String::new(),
        };
        if !output_names.is_empty() {
            attributes.push(("output_names", &output_names));
        }
        self.xml.open("layer", &attributes)?;
        let data = self.data(node)?;
        if !data.is_empty() {
            let data: Vec<(&str, &str)> = data.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            self.xml.empty("data", &data)?;
        }
        info::write_node(&mut self.xml, &node.rt_info)?;
        if !outer.inputs.is_empty() {
            self.xml.open("input", &[])?;
            for (i, value) in outer.inputs.iter().enumerate() {
                self.port(i, model.fact(*value), "", node.input_rt_info.get(i))?;
            }
            self.xml.close("input");
        }
        if !node.outputs().is_empty() && !is_result {
            self.xml.open("output", &[])?;
            for (i, output) in node.outputs().iter().enumerate() {
                let names = names::join(&output.names)?;
                self.port(outer.inputs.len() + i, &output.fact, &names, Some(&output.rt_info))?;
            }
            self.xml.close("output");
        }
        self.bodies(node, outer, depth)?;
        self.xml.close("layer");
        Ok(())
    }

    fn port(&mut self, id: usize, fact: &Fact, names: &str, info: Option<&RtInfo>) -> Result<()> {
        let id = id.to_string();
        let mut attributes = vec![("id", id.as_str()), ("precision", fact.ty.precision())];
        if !names.is_empty() {
            attributes.push(("names", names));
        }
        let dims = fact.shape.dims().unwrap_or_default();
        let info = info.filter(|i| !i.is_empty());
        if dims.is_empty() && info.is_none() {
            return self.xml.empty("port", &attributes);
        }
        self.xml.open("port", &attributes)?;
        for dim in dims {
            self.xml.text("dim", &dim.get().unwrap_or(-1).to_string())?;
        }
        if let Some(info) = info {
            info::write_node(&mut self.xml, info)?;
        }
        self.xml.close("port");
        Ok(())
    }

    /// Attributes of the operation as text, bodies left out.
    fn data(&mut self, node: &Node) -> Result<Vec<(String, String)>> {
        if let Some(constant) = node.op().get::<Constant>() {
            let tensor = constant.tensor();
            let position = self.weights.put(tensor)?;
            let shape: Vec<String> = tensor.shape().iter().map(|n| n.to_string()).collect();
            return Ok(vec![
                ("element_type".into(), tensor.element_type().name().into()),
                ("shape".into(), shape.join(", ")),
                ("offset".into(), position.offset.to_string()),
                ("size".into(), position.size.to_string()),
            ]);
        }
        let attrs = node.op().attrs();
        let mode = attrs.iter().find(|(name, _)| name == "auto_pad").and_then(|(_, v)| v.to_text());
        let automatic = mode.is_some_and(|m| !m.eq_ignore_ascii_case("explicit"));
        let mut data = Vec::with_capacity(attrs.len());
        let declared = node.op().info().attrs;
        let is_internal = |name: &str| declared.iter().any(|a| a.internal && a.name == name);
        for (name, value) in attrs {
            let text = match value {
                AttrValue::Body(_) => continue,
                _ if !self.keep_internal && is_internal(&name) => continue,
                AttrValue::Ints(pads) if automatic && matches!(&*name, "pads_begin" | "pads_end") => {
                    AttrValue::Ints(vec![0; pads.len()]).to_text()
                }
                value => value.to_text(),
            };
            let text = text.ok_or_else(|| Error::unsupported(format!("attribute `{name}` has no form in an IR")))?;
            data.push((name.into_owned(), text));
        }
        Ok(data)
    }
}

fn layer_order(model: &Model) -> Result<Vec<NodeId>> {
    let mut needed = vec![false; model.slots()];
    let roots = [model.parameters(), model.results(), model.sinks()].concat();
    let mut stack = roots;
    while let Some(id) = stack.pop() {
        if !std::mem::replace(&mut needed[id.0 as usize], true) {
            stack.extend(model.node(id).inputs().iter().map(|v| v.node));
        }
    }
    let order = model.topological_order()?;
    let is_late = |id: &NodeId| {
        let node = model.node(*id);
        let unused = (0..node.outputs().len()).all(|port| model.users(Value { node: *id, port }).is_empty());
        (node.op().info().sink && unused) || node.op().is::<ResultOp>()
    };
    let live = order.into_iter().filter(|id| needed[id.0 as usize]);
    let first = [model.parameters().to_vec(), live.filter(|id| !is_late(id)).collect()].concat();
    let mut seen = vec![false; model.slots()];
    let all = first.into_iter().chain(model.sinks().iter().copied()).chain(model.results().iter().copied());
    Ok(all.filter(|id| !std::mem::replace(&mut seen[id.0 as usize], true)).collect())
}
