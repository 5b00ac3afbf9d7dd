//! What makes two compilations the same: everything a file of the model would hold, with the contents of its weights, and
//! who compiles it with what properties. Node ids are left out; nodes count by their place in topological order.

use carafe_device::{Device, Properties};
use carafe_graph::{AttrValue, Body, Model, Op, Result, RtInfo, RtTree};
use carafe_tensor::{ElementType, Hash128, Tensor};
use std::collections::HashMap;
use std::path::Path;

/// Properties that always count: they choose what is compiled for.
const ALWAYS: &[&str] = &["DEVICE_ID", "MULTI_DEVICE_PRIORITIES"];

/// Name of the entry for this compilation. `others` is whatever else decides over the result: versions of extensions, and
/// of the devices that this one is made of.
pub(crate) fn key(
    model: &Model,
    name: &str,
    device: &dyn Device,
    properties: &Properties,
    others: &[String],
) -> Result<u128> {
    let mut h = Hash128::default();
    let version = device.version();
    for text in [env!("CARGO_PKG_VERSION"), name, &version.build, &version.description] {
        h.text(text);
    }
    h.number(others.len() as u64);
    others.iter().for_each(|text| h.text(text));
    for (name, value) in that_matter(device, properties) {
        h.text(name);
        h.text(value);
    }
    hash_model(&mut h, model)?;
    Ok(h.finish())
}

/// Path, size and time of change of a library or program whose code decides over a compilation.
pub(crate) fn file_stamp(path: &Path) -> String {
    let meta = std::fs::metadata(path).ok();
    let changed = meta.as_ref().and_then(|m| m.modified().ok());
    format!("{} {:?} {changed:?}", path.display(), meta.map(|m| m.len()))
}

// Those that the device calls important for caching, with their defaults; all that are given where it does not say.
fn that_matter<'a>(device: &'a dyn Device, properties: &'a Properties) -> Vec<(&'a str, &'a str)> {
    let list = device.metric("CACHING_PROPERTIES").unwrap_or_default();
    if list.trim().is_empty() {
        return properties.iter().collect();
    }
    let table = device.properties();
    let counts = |name: &&str| list.split_whitespace().any(|n| n == *name) || ALWAYS.contains(name);
    let names = table.iter().map(|p| p.name).filter(counts);
    names.filter_map(|name| Some((name, properties.or_default(table, name)?))).collect()
}

fn hash_model(h: &mut Hash128, model: &Model) -> Result<()> {
    let order = model.topological_order()?;
    let positions: HashMap<_, u64> = order.iter().copied().zip(0..).collect();
    h.text(&model.name);
    model.rt_info.iter().for_each(|tree| hash_tree(h, tree));
    h.number(order.len() as u64);
    for id in &order {
        let node = model.node(*id);
        h.text(node.name());
        hash_op(h, node.op())?;
        h.number(node.inputs().len() as u64);
        for value in node.inputs() {
            h.number(positions[&value.node]);
            h.number(value.port as u64);
        }
        hash_info(h, &node.rt_info);
        node.input_rt_info.iter().for_each(|info| hash_info(h, info));
        h.number(node.outputs().len() as u64);
        for output in node.outputs() {
            h.text(output.fact.ty.name());
            h.text(&output.fact.shape.to_string());
            h.number(output.names.len() as u64);
            output.names.iter().for_each(|name| h.text(name));
            hash_info(h, &output.rt_info);
        }
    }
    for list in [model.parameters(), model.results(), model.sinks()] {
        h.number(list.len() as u64);
        list.iter().for_each(|id| h.number(positions[id]));
    }
    Ok(())
}

fn hash_op(h: &mut Hash128, op: &dyn Op) -> Result<()> {
    for text in [op.info().name, op.type_name(), op.opset()] {
        h.text(text);
    }
    for (name, value) in op.attrs() {
        // Bodies come below, where their port maps are.
        if !matches!(value, AttrValue::Body(_)) {
            h.text(&name);
            hash_value(h, &value)?;
        }
    }
    for (name, body) in op.bodies() {
        h.text(name);
        hash_body(h, body)?;
    }
    Ok(())
}

fn hash_value(h: &mut Hash128, value: &AttrValue) -> Result<()> {
    match value {
        AttrValue::Tensor(t) => hash_tensor(h, &t.0)?,
        // Their bits: the text of a float is for people.
        AttrValue::Float(x) => h.number(x.to_bits()),
        AttrValue::Floats(list) => {
            h.number(list.len() as u64);
            list.iter().for_each(|x| h.number(x.to_bits()));
        }
        AttrValue::Strs(list) => {
            h.number(list.len() as u64);
            list.iter().for_each(|s| h.text(s));
        }
        other => h.text(&other.to_text().unwrap_or_default()),
    }
    Ok(())
}

fn hash_tensor(h: &mut Hash128, tensor: &Tensor) -> Result<()> {
    h.text(tensor.element_type().name());
    h.number(tensor.shape().len() as u64);
    tensor.shape().iter().for_each(|d| h.number(*d as u64));
    match tensor.element_type() {
        ElementType::String => tensor.strings()?.iter().for_each(|s| h.text(s)),
        _ => h.bytes(tensor.bytes()),
    }
    Ok(())
}

fn hash_body(h: &mut Hash128, body: &Body) -> Result<()> {
    // The port map is a handful of numbers; their debug form has all of them.
    let ports = (&body.inputs, &body.outputs, body.current_iteration, body.execution_condition);
    h.text(&format!("{ports:?}"));
    hash_model(h, &body.model)
}

fn hash_info(h: &mut Hash128, info: &RtInfo) {
    h.number(info.attributes.len() as u64);
    for attribute in &info.attributes {
        h.text(&attribute.name);
        h.text(&attribute.version);
        for (name, value) in &attribute.fields {
            h.text(name);
            h.text(value);
        }
    }
    h.number(info.user.len() as u64);
    info.user.iter().for_each(|tree| hash_tree(h, tree));
}

fn hash_tree(h: &mut Hash128, tree: &RtTree) {
    h.text(&tree.key);
    h.number(u64::from(tree.value.is_some()));
    h.text(tree.value.as_deref().unwrap_or_default());
    h.number(tree.children.len() as u64);
    tree.children.iter().for_each(|child| hash_tree(h, child));
}
