//! Nodes without a rule, kept as they are: for looking at a model, never for running it.

use crate::item::Item;
use crate::node_cx::Outputs;
use crate::source::SourceNode;
use carafe_graph::{AttrMap, AttrValue, FrameworkNode, ItemType, Model, NodeId, Result, Value};
use std::collections::HashSet;

/// Takes back what a rule emitted before it failed.
pub(crate) fn forget<'i>(model: &mut Model, first_slot: usize, named: impl Iterator<Item = &'i Item>) -> Result<()> {
    let mut emitted: Vec<NodeId> = model.nodes().map(|(id, _)| id).filter(|id| id.0 as usize >= first_slot).collect();
    // Values taken from outside of a sub-graph have a name, and other nodes may read them later.
    let mut values = vec![];
    named.for_each(|item| item.values(&mut values));
    let kept: HashSet<NodeId> = values.iter().map(|v| v.node).collect();
    emitted.retain(|id| !kept.contains(id));
    while let Some(id) = emitted.pop() {
        model.remove(id)?;
    }
    Ok(())
}

/// An opaque node in place of the source node; `domain` is how the format calls its own.
pub(crate) fn keep(
    model: &mut Model,
    source: &SourceNode,
    domain: &str,
    items: &[Item],
    types: Vec<ItemType>,
) -> Result<Outputs> {
    let mut inputs = vec![];
    items.iter().for_each(|item| item.values(&mut inputs));
    // What has no text is only described.
    let shown = |v: &AttrValue| if v.to_text().is_some() { v.clone() } else { AttrValue::Text(v.to_string()) };
    let mut attrs: AttrMap = source.attrs.iter().map(|(n, v)| (n.to_string(), shown(v))).collect();
    for (name, graph) in source.graphs() {
        attrs.set(name, AttrValue::Text(format!("a graph of {} nodes", graph.nodes.len())));
    }
    let opset = if source.domain.is_empty() { domain.to_string() } else { source.domain.clone() };
    let outputs = types.iter().map(ItemType::fact).map(|f| (f.ty, f.shape)).collect();
    let op = FrameworkNode { type_name: source.op_type.clone(), opset, attrs, outputs, rule: None };
    let id = model.add(source.label(), op, &inputs)?;
    let item = |(port, ty)| Item::of(Value { node: id, port }, ty);
    Ok(Outputs(types.into_iter().enumerate().map(item).collect()))
}
