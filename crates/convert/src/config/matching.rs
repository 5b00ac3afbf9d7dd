//! Finds what an entry means in a graph. Both kinds of graph have names, inputs and users, so it need not know which it is.

use super::entry::{Entry, Kind, Port};
use carafe_graph::{Error, Match, Model, NodeId, Parameter, Result, ResultOp, Value};
use regex::Regex;
use std::collections::HashSet;

/// Every match of the entry, and the scopes that are not in the model; `general` has one match, which is everything.
pub(super) fn find(model: &Model, entry: &Entry) -> Result<(Vec<Match>, Vec<String>)> {
    let mut absent = Vec::new();
    let with = |m: Match| Match { attrs: entry.attrs.clone(), json: entry.json.clone(), ..m };
    let found = match &entry.kind {
        Kind::General => vec![Match { name: entry.id.clone(), ..Match::default() }],
        Kind::Points { starts, ends, include_inputs, include_outputs } => {
            vec![by_points(model, &entry.id, (starts, *include_inputs), (ends, *include_outputs))?]
        }
        Kind::Scope { instances, inputs, outputs } => {
            let mut found = Vec::new();
            for instance in instances {
                match by_scope(model, instance, inputs.as_deref(), outputs.as_deref())? {
                    Some(m) => found.push(m),
                    None => absent.push(instance.clone()),
                }
            }
            found
        }
    };
    Ok((found.into_iter().map(with).collect(), absent))
}

fn node_named(model: &Model, name: &str) -> Result<NodeId> {
    let by_tensor =
        || model.nodes().find(|(_, n)| n.outputs().iter().any(|o| o.names.contains(name))).map(|(id, _)| id);
    model.find_node(name).or_else(by_tensor).ok_or_else(|| Error::not_found(format!("the model has no node `{name}`")))
}

fn by_points(model: &Model, id: &str, starts: (&[String], bool), ends: (&[String], bool)) -> Result<Match> {
    let at = |names: &[String]| names.iter().map(|n| node_named(model, n)).collect::<Result<Vec<_>>>();
    let ((starts, include_inputs), (ends, include_outputs)) = ((at(starts.0)?, starts.1), (at(ends.0)?, ends.1));
    let inner = between(model, &starts, &ends)?;
    let inputs = match include_inputs {
        true => starts.iter().map(|s| only_input(model, *s)).collect::<Result<_>>()?,
        false => starts.iter().map(|s| (*s).into()).collect(),
    };
    let outputs = match include_outputs {
        true => ends.iter().map(|e| (*e).into()).collect(),
        false => {
            let parents = ends.iter().flat_map(|e| model.node(*e).inputs().to_vec());
            parents.filter(|v| inner.contains(&v.node)).collect()
        }
    };
    let outside = |id: &NodeId| (!include_inputs && starts.contains(id)) || (!include_outputs && ends.contains(id));
    let mut nodes: Vec<NodeId> = inner.iter().copied().filter(|id| !outside(id)).collect();
    nodes.sort_unstable();
    Ok(Match { name: id.to_string(), inputs, outputs, nodes, ..Match::default() })
}

// What flows into a start point. Constants do not flow; where the graph is as decoded they are nodes of the format, without
// inputs.
fn only_input(model: &Model, start: NodeId) -> Result<Value> {
    let node = model.node(start);
    let is_fixed = |v: &Value| model.node(v.node).inputs().is_empty() && !model.node(v.node).op().is::<Parameter>();
    let flows: Vec<Value> = node.inputs().iter().copied().filter(|v| !is_fixed(v)).collect();
    match flows.as_slice() {
        [] => Ok(node.inputs().first().copied().unwrap_or(start.into())),
        [one] => Ok(*one),
        [first, rest @ ..] if rest.iter().all(|v| v == first) => Ok(*first),
        many => Err(Error::invalid(format!(
            "start point `{}` has {} inputs, it may have one; use a `scope`, or points before it with \
             `include_inputs_to_sub_graph` false",
            node.name(),
            many.len()
        ))),
    }
}

// Forward from the starts to the ends, then everything that feeds what was found. Each end must be reached, and no input
// of the model may be inside.
fn between(model: &Model, starts: &[NodeId], ends: &[NodeId]) -> Result<HashSet<NodeId>> {
    let mut inner: HashSet<NodeId> = HashSet::new();
    let mut stack = starts.to_vec();
    while let Some(id) = stack.pop() {
        if inner.insert(id) && !ends.contains(&id) {
            let node = model.node(id);
            let ports = (0..node.outputs().len()).map(|port| Value { node: id, port });
            stack.extend(ports.flat_map(|v| model.users(v).iter().map(|u| u.node)));
        }
    }
    if let Some(end) = ends.iter().find(|e| !inner.contains(e)) {
        return Err(Error::invalid(format!(
            "end point `{}` is not reached from the start points",
            model.node(*end).name()
        )));
    }
    // Ways that miss the ends are not part of it.
    let mut between: HashSet<NodeId> = starts.iter().copied().collect();
    let mut stack: Vec<NodeId> = ends.iter().filter(|e| !starts.contains(e)).copied().collect();
    let mut seen: HashSet<NodeId> = stack.iter().copied().collect();
    while let Some(id) = stack.pop() {
        let node = model.node(id);
        if node.op().is::<Parameter>() {
            return Err(Error::invalid(format!("input `{}` of the model lies inside of the match", node.name())));
        }
        between.insert(id);
        for v in node.inputs() {
            if !starts.contains(&v.node) && seen.insert(v.node) {
                stack.push(v.node);
            }
        }
    }
    between.extend(ends);
    Ok(between)
}

pub(super) fn pattern(text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|e| Error::invalid(format!("pattern `{text}`: {e}")))
}

/// Nodes whose names begin as the instance says; inputs and outputs of the model are not among them.
pub(super) fn nodes_of(model: &Model, instance: &str) -> Result<Vec<NodeId>> {
    let scope = pattern(&format!("^(?:{instance})"))?;
    let inside = model.nodes().filter(|(_, n)| !n.op().is::<ResultOp>() && !n.op().is::<Parameter>());
    Ok(inside.filter(|(_, n)| scope.is_match(n.name())).map(|(id, _)| id).collect())
}

fn by_scope(
    model: &Model,
    instance: &str,
    inputs: Option<&[Vec<Port>]>,
    outputs: Option<&[Port]>,
) -> Result<Option<Match>> {
    let nodes = nodes_of(model, instance)?;
    if nodes.is_empty() {
        return Ok(None);
    }
    let place = |port: &Port| -> Result<NodeId> {
        let node_pattern = pattern(&port.node)?;
        let is_node = |id: &NodeId| !carafe_frontend::is_marker(model.node(*id).op());
        let fits = |id: &NodeId| node_pattern.is_match(model.node(*id).name()) && is_node(id);
        let like: Vec<NodeId> = nodes.iter().copied().filter(fits).collect();
        match like.as_slice() {
            [one] => Ok(*one),
            many => Err(Error::invalid(format!("`{}` matches {} nodes of scope `{instance}`", port.node, many.len()))),
        }
    };
    let inputs = match inputs {
        None => crossing(model, &nodes).into_iter().map(|(v, _)| v).collect(),
        Some(list) => list
            .iter()
            .map(|consumers| {
                let mut value = None;
                for port in consumers {
                    let node = place(port)?;
                    let read = model.input(node, port.port).ok_or_else(|| {
                        Error::invalid(format!("`{}` has no input {}", model.node(node).name(), port.port))
                    })?;
                    if value.is_some_and(|v| v != read) {
                        return Err(Error::invalid(format!(
                            "the ports of one input read different values; `{}` is one of them",
                            port.node
                        )));
                    }
                    value = Some(read);
                }
                value.ok_or_else(|| Error::invalid("`inputs` has an input that nothing reads"))
            })
            .collect::<Result<Vec<_>>>()?,
    };
    let outputs = match outputs {
        None => leaving(model, &nodes),
        Some(list) => list
            .iter()
            .map(|port| {
                let node = place(port)?;
                match port.port < model.node(node).outputs().len() {
                    true => Ok(Value { node, port: port.port }),
                    false => Err(Error::invalid(format!("`{}` has no output {}", model.node(node).name(), port.port))),
                }
            })
            .collect::<Result<Vec<_>>>()?,
    };
    Ok(Some(Match { name: scope_name(model, instance, &nodes)?, inputs, outputs, nodes, ..Match::default() }))
}

// What the pattern matched, not the pattern: the beginning that the names of all matched nodes share as far as it goes.
fn scope_name(model: &Model, instance: &str, nodes: &[NodeId]) -> Result<String> {
    let scope = pattern(&format!("^(?:{instance})"))?;
    let matched = nodes.iter().filter_map(|id| scope.find(model.node(*id).name())).map(|m| m.as_str());
    let shared = matched.reduce(|a, b| {
        let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
        &a[..same.unwrap_or(a.len().min(b.len()))]
    });
    let name = shared.unwrap_or("").trim_end_matches('/');
    // Scopes with nothing in common are told by the node that stands first.
    let first = || nodes.first().map_or(instance, |id| model.node(*id).name());
    Ok(if name.is_empty() { first().to_string() } else { name.to_string() })
}

/// Values from outside that nodes read, each with the ports that read it.
pub(super) fn crossing(model: &Model, nodes: &[NodeId]) -> Vec<(Value, Vec<(NodeId, usize)>)> {
    let inside: HashSet<NodeId> = nodes.iter().copied().collect();
    let mut found: Vec<(Value, Vec<(NodeId, usize)>)> = Vec::new();
    for id in nodes {
        for (i, v) in model.node(*id).inputs().iter().enumerate().filter(|(_, v)| !inside.contains(&v.node)) {
            match found.iter_mut().find(|(value, _)| value == v) {
                Some((_, ports)) => ports.push((*id, i)),
                None => found.push((*v, vec![(*id, i)])),
            }
        }
    }
    found
}

/// Values of these nodes that are read outside, and those of nodes that nothing reads.
pub(super) fn leaving(model: &Model, nodes: &[NodeId]) -> Vec<Value> {
    let inside: HashSet<NodeId> = nodes.iter().copied().collect();
    let mut found = Vec::new();
    for id in nodes {
        let node = model.node(*id);
        let values = (0..node.outputs().len()).map(|port| Value { node: *id, port });
        let unread = node.inputs().iter().any(|_| true) && values.clone().all(|v| model.users(v).is_empty());
        let leaves = |v: &Value| model.users(*v).iter().any(|u| !inside.contains(&u.node));
        found.extend(values.filter(|v| leaves(v) || (unread && v.port == 0)));
    }
    found
}
