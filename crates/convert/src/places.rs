//! Finds what a user names: a tensor, a node, `port:node` (an input port) or `node:port` (an output port). A tensor name
//! wins over a node name, and the whole text over a split at the colon, since framework names hold colons themselves.

use carafe_graph::{Error, Model, NodeId, Parameter, Result, ResultOp, Use, Value, edit_distance};

/// What a text names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Tensor(Value),
    Node(NodeId),
    /// An input port of a node.
    Input(Use),
    /// An output port of a node.
    Output(Value),
}

/// Looks a name up; a Result stands for the tensor that it gives out.
pub(super) fn find(model: &Model, text: &str) -> Result<Place> {
    if let Some(v) = by_tensor_name(model, text) {
        return Ok(Place::Tensor(v));
    }
    if let Some(id) = model.find_node(text) {
        return Ok(if model.node(id).op().is::<ResultOp>() {
            Place::Tensor(model.result_value(id))
        } else {
            Place::Node(id)
        });
    }
    if let Some((node, port)) = split_port(model, text, true) {
        return input_port(model, node, port);
    }
    if let Some((node, port)) = split_port(model, text, false) {
        return output_port(model, node, port);
    }
    Err(unknown(model, text))
}

/// The tensor of this name.
pub(super) fn by_tensor_name(model: &Model, name: &str) -> Option<Value> {
    // A name given to a model output as such belongs to the Result.
    let own = model.results().iter().find(|&&r| model.node(r).outputs()[0].names.contains(name));
    if let Some(&r) = own {
        return Some(model.result_value(r));
    }
    model.nodes().find_map(|(id, node)| {
        let port = node.outputs().iter().position(|o| o.names.contains(name))?;
        Some(Value { node: id, port })
    })
}

// `3:node` or `node:3`, where the node exists.
fn split_port(model: &Model, text: &str, port_first: bool) -> Option<(NodeId, usize)> {
    let (a, b) = if port_first { text.split_once(':')? } else { text.rsplit_once(':')? };
    let (port, name) = if port_first { (a, b) } else { (b, a) };
    let port = port.trim().parse().ok()?;
    let by_tensor = || by_tensor_name(model, name).map(|v| v.node);
    Some((model.find_node(name).or_else(by_tensor)?, port))
}

fn input_port(model: &Model, node: NodeId, port: usize) -> Result<Place> {
    let n = model.node(node);
    if n.op().is::<Parameter>() {
        return Err(Error::usage(format!("`{}` is an input of the model and has no input port {port}", n.name())));
    }
    if port >= n.inputs().len() {
        return Err(no_port(model, node, "input", port, n.inputs().len()));
    }
    Ok(Place::Input(Use { node, input: port }))
}

fn output_port(model: &Model, node: NodeId, port: usize) -> Result<Place> {
    let n = model.node(node);
    if port >= n.outputs().len() {
        return Err(no_port(model, node, "output", port, n.outputs().len()));
    }
    Ok(Place::Output(Value { node, port }))
}

fn no_port(model: &Model, node: NodeId, side: &str, port: usize, n: usize) -> Error {
    let range = match n {
        0 => "none".to_string(),
        1 => "only 0".to_string(),
        n => format!("0 to {}", n - 1),
    };
    Error::not_found(format!("{} has no {side} port {port}; it has {range}", model.node(node).location())).with_code(26)
}

fn unknown(model: &Model, text: &str) -> Error {
    let mut names: Vec<&str> = Vec::new();
    for (_, node) in model.nodes() {
        names.push(node.name());
        names.extend(node.outputs().iter().flat_map(|o| o.names.iter().map(String::as_str)));
    }
    let like = near(text, names.into_iter());
    let inputs: Vec<String> = model.parameters().iter().map(|&p| model.parameter_name(p)).collect();
    let outputs: Vec<String> = model.results().iter().map(|&r| model.result_name(r)).collect();
    Error::not_found(format!(
        "the model has no tensor or node `{text}`{like}; its inputs are: {}; its outputs are: {}",
        some_of(&inputs),
        some_of(&outputs)
    ))
    .with_code(26)
}

/// An input of the model by the name in `--input`, a tensor name or the name of its node.
pub(super) fn find_input(model: &Model, inputs: &[super::NamedInput], name: &str) -> Result<NodeId> {
    if let Some(n) = inputs.iter().find(|n| n.name == name) {
        return Ok(n.parameter);
    }
    if let Some(i) = model.find_parameter(name) {
        return Ok(model.parameters()[i]);
    }
    let names: Vec<String> = model.parameters().iter().map(|&p| model.parameter_name(p)).collect();
    let like = near(name, names.iter().map(String::as_str));
    let text = format!("the model has no input `{name}`{like}; it has: {}", some_of(&names));
    Err(Error::not_found(text).with_code(26))
}

/// ` (did you mean a or b?)` when some names look like the wanted one, or contain it.
pub(super) fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let lower = wanted.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let other = name.to_lowercase();
            let within = lower.len() >= 3 && other.contains(&lower);
            let distance = edit_distance(&lower, &other);
            let shorter = lower.chars().count().min(other.chars().count());
            (within || (distance <= 1 + shorter / 4 && distance < shorter)).then_some((distance, name))
        })
        .collect();
    found.sort();
    found.dedup();
    let like: Vec<String> = found.into_iter().take(3).map(|(_, n)| format!("`{n}`")).collect();
    if like.is_empty() { String::new() } else { format!(" (did you mean {}?)", like.join(" or ")) }
}

/// Names for a message; the tail of a long list is only counted.
pub(super) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 12;
    if names.is_empty() {
        return "none".to_string();
    }
    let mut text = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}
