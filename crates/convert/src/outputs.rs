//! `--output`: which tensors the model gives, and removal of everything they do not need. An input that a cut left without
//! use goes; one that had no use before stays, as the model was written that way.

use super::places::{self, Place};
use super::syntax;
use carafe_graph::{Error, Model, NodeId, Result, Value};
use std::collections::HashSet;

/// Tensors named by the option, in order, each with what the user calls it where that is a name.
pub(super) fn read(model: &Model, text: &str) -> Result<Vec<(Value, Option<String>)>> {
    let mut values: Vec<(Value, Option<String>)> = Vec::new();
    for item in syntax::list(text)? {
        let place = places::find(model, item)?;
        let found: Vec<Value> = match place {
            Place::Tensor(v) | Place::Output(v) => vec![v],
            Place::Input(u) => vec![model.node(u.node).inputs()[u.input]],
            Place::Node(node) => (0..model.node(node).outputs().len()).map(|port| Value { node, port }).collect(),
        };
        if found.is_empty() {
            return Err(Error::usage(format!("`{item}` is a node that gives nothing")));
        }
        let name = match place {
            Place::Node(id) | Place::Output(Value { node: id, .. }) if model.node(id).outputs().len() == 1 => {
                Some(model.node(id).name().to_string())
            }
            Place::Tensor(_) => Some(item.to_string()),
            _ => None,
        };
        for v in found {
            if values.iter().any(|(other, _)| *other == v) {
                return Err(Error::usage(format!("`{item}` names a tensor that is in the list already")));
            }
            values.push((v, name.clone()));
        }
    }
    Ok(values)
}

/// Makes these the outputs of the model, in this order; a Result that is there already is kept. Users find an output by the
/// name they gave it here.
pub(super) fn keep_only(model: &mut Model, values: &[(Value, Option<String>)]) -> Result<()> {
    let mut order = Vec::new();
    for (v, name) in values {
        let v = *v;
        let name = name.as_ref().filter(|name| places::by_tensor_name(model, name).is_none_or(|other| other == v));
        if let Some(name) = name {
            model.add_tensor_name(v, name);
        }
        let own = |r: NodeId| &model.node(r).outputs()[0].names;
        let present: Vec<NodeId> = model.results().iter().copied().filter(|&r| model.result_value(r) == v).collect();
        let named = present.iter().copied().find(|r| name.is_some_and(|name| own(*r).contains(name)));
        order.push(match named.or(present.first().copied()) {
            Some(r) => {
                if let Some(name) = name.filter(|_| !own(r).is_empty()) {
                    model.add_tensor_name(r.into(), name);
                }
                r
            }
            None => {
                let name = format!("{}/sink_port_{}", model.node(v.node).name(), v.port);
                model.result(&name, v)?
            }
        });
    }
    for r in model.results().to_vec() {
        if !order.contains(&r) {
            model.remove(r)?;
        }
    }
    model.order_results(order);
    Ok(())
}

/// Nodes that the results need, and with them the variables that these nodes read.
pub(super) fn needed(model: &Model) -> HashSet<NodeId> {
    let mut live = HashSet::new();
    reach(model, model.results().to_vec(), &mut live);
    loop {
        let read: HashSet<String> = model
            .nodes()
            .filter(|(id, n)| live.contains(id) && n.op().info().stateful && !n.op().info().sink)
            .filter_map(|(id, _)| variable(model, id))
            .collect();
        let writers = model.sinks().iter().copied();
        let new: Vec<NodeId> =
            writers.filter(|s| !live.contains(s) && variable(model, *s).is_none_or(|v| read.contains(&v))).collect();
        if new.is_empty() {
            return live;
        }
        reach(model, new, &mut live);
    }
}

fn reach(model: &Model, mut stack: Vec<NodeId>, live: &mut HashSet<NodeId>) {
    while let Some(id) = stack.pop() {
        if live.insert(id) {
            stack.extend(model.node(id).inputs().iter().map(|v| v.node));
        }
    }
}

fn variable(model: &Model, id: NodeId) -> Option<String> {
    let attrs = model.node(id).op().attrs();
    attrs.into_iter().find(|(name, _)| name == "variable_id").and_then(|(_, value)| value.to_text())
}

/// Removes what the results no longer need. `before` is what was needed before the cut, `listed` the inputs the user named.
pub(super) fn drop_unneeded(model: &mut Model, before: &HashSet<NodeId>, listed: &[NodeId]) -> Result<()> {
    let live = needed(model);
    for id in model.topological_order()?.into_iter().rev() {
        let idle_input = model.parameters().contains(&id) && (!before.contains(&id) || listed.contains(&id));
        if !live.contains(&id) && !idle_input {
            model.remove(id)?;
        }
    }
    Ok(())
}
