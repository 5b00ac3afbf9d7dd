//! Sub-graph replacement by a JSON file (`--transformations_config`): a list of entries, each naming what to match by
//! `points`, by `scope` or not at all (`general`). An entry with `op` replaces the match by one node of that operation; a
//! `general` one runs the rewrite of an extension whose name is the entry's `id`. A rewrite gets the model alone, so an
//! entry that would hand it a match or attributes is refused, not cut short.

use carafe_graph::{AttrMap, AttrValue, Error, Model, NodeId, Notes, Parameter, Pass, Result, Value};
use carafe_runtime::Core;
use regex::Regex;
use serde_json::Value as Json;
use std::collections::HashSet;

/// Does what the entries of the file say; how many replacements were made. An entry that matches nothing is told of in the
/// notes, and the conversion goes on.
pub fn apply_config(model: &mut Model, text: &str, core: &Core, notes: &mut Notes) -> Result<usize> {
    let entries: Json = serde_json::from_str(text).map_err(|e| Error::invalid(format!("not valid JSON: {e}")))?;
    let Json::Array(entries) = entries else { return Err(Error::invalid("expected a list of replacements")) };
    let mut replaced = 0;
    for (i, entry) in entries.iter().enumerate() {
        let id = entry.get("id").and_then(Json::as_str);
        let id = id.ok_or_else(|| Error::invalid(format!("entry {i} has no `id`")))?;
        let found = apply_entry(model, entry, id, core, notes).map_err(|e| e.at(format!("replacement `{id}`")))?;
        if found == 0 {
            notes.add(|| format!("transformations_config: `{id}` matches nothing in this model"));
        }
        replaced += found;
    }
    if replaced > 0 {
        model.prune();
        model.infer()?;
    }
    Ok(replaced)
}

/// What an entry matched: the values that come in, those that go out, and the nodes between.
struct Match {
    name: String,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

fn apply_entry(model: &mut Model, entry: &Json, id: &str, core: &Core, notes: &mut Notes) -> Result<usize> {
    let kind = entry.get("match_kind").and_then(Json::as_str);
    let Some(op) = entry.get("op").and_then(Json::as_str) else {
        check_kind(kind)?;
        if kind != Some("general") {
            return Err(Error::unsupported(
                "an entry by points or scope needs `op`; a match cannot be handed to a rewrite",
            ));
        }
        if entry.get("custom_attributes").and_then(Json::as_object).is_some_and(|o| !o.is_empty()) {
            return Err(Error::unsupported("`custom_attributes` cannot be handed to a rewrite; only to an `op`"));
        }
        return run_rewrite(model, id, core, notes);
    };
    let matches = match kind {
        Some("points") => vec![by_points(model, entry, id)?],
        Some("scope") => by_scope(model, entry)?,
        Some("general") => return Err(Error::invalid("a `general` entry matches no nodes, so it has no `op`")),
        other => return check_kind(other).map(|()| 0),
    };
    let attrs = attributes(entry.get("custom_attributes"))?;
    let registry = core.registry();
    let (opset, name) = carafe_frontend::split_name(op)?;
    let class = match opset {
        Some(opset) => registry.find(name, opset),
        None => registry.newest(name),
    };
    let class = class.ok_or_else(|| {
        let near = registry.near(name).join(", ");
        Error::not_found(format!("there is no operation `{op}`; near: {near}; load its extension with --extension"))
    })?;
    let n = matches.len();
    for m in matches {
        let node = model.add_ref(&m.name, class.create(&attrs)?, &m.inputs)?;
        let given = model.node(node).outputs().len();
        if given < m.outputs.len() {
            return Err(Error::invalid(format!("{op} gives {given} outputs, the match has {}", m.outputs.len())));
        }
        for (port, old) in m.outputs.into_iter().enumerate() {
            model.replace_value(old, Value { node, port });
        }
    }
    Ok(n)
}

fn check_kind(kind: Option<&str>) -> Result<()> {
    match kind {
        Some("points" | "scope" | "general") => Ok(()),
        Some(other) => Err(Error::invalid(format!("`match_kind` is `{other}`; known: points, scope, general"))),
        None => Err(Error::invalid("`match_kind` is missing; known: points, scope, general")),
    }
}

// The extension's rewrite of that name, whatever its phase.
fn run_rewrite(model: &mut Model, id: &str, core: &Core, notes: &mut Notes) -> Result<usize> {
    let all: Vec<_> = core.extensions().into_iter().flat_map(|e| e.passes).collect();
    let Some(found) = all.iter().find(|p| p.pass.name() == id) else {
        let known: Vec<&str> = all.iter().map(|p| p.pass.name()).collect();
        let known = if known.is_empty() { "none is loaded".into() } else { format!("loaded: {}", known.join(", ")) };
        return Err(Error::not_found(format!(
            "it has no `op`, and no extension brings a rewrite of this name; {known}; use --extension"
        )));
    };
    let pass: &dyn Pass = &*found.pass;
    if notes.registry().is_none() {
        *notes = std::mem::take(notes).with_registry(std::sync::Arc::new(core.registry()));
    }
    pass.run(model, notes)
}

fn names<'a>(list: Option<&'a Json>, what: &str) -> Result<Vec<&'a str>> {
    let list =
        list.and_then(Json::as_array).ok_or_else(|| Error::invalid(format!("`{what}` must be a list of names")))?;
    list.iter().map(|n| n.as_str().ok_or_else(|| Error::invalid(format!("`{what}` must be a list of names")))).collect()
}

fn node_named(model: &Model, name: &str) -> Result<NodeId> {
    let by_tensor =
        || model.nodes().find(|(_, n)| n.outputs().iter().any(|o| o.names.contains(name))).map(|(id, _)| id);
    model.find_node(name).or_else(by_tensor).ok_or_else(|| Error::not_found(format!("the model has no node `{name}`")))
}

fn by_points(model: &Model, entry: &Json, id: &str) -> Result<Match> {
    let points = entry.get("instances").ok_or_else(|| Error::invalid("`instances` is missing"))?;
    let at = |key: &str| -> Result<Vec<NodeId>> {
        names(points.get(key), key)?.into_iter().map(|n| node_named(model, n)).collect()
    };
    let (starts, ends) = (at("start_points")?, at("end_points")?);
    let flag = |key: &str| entry.get(key).and_then(Json::as_bool).unwrap_or(true);
    let inner = between(model, &starts, &ends)?;
    let inputs = match flag("include_inputs_to_sub_graph") {
        true => starts.iter().map(|s| model.input(*s, 0).unwrap_or((*s).into())).collect(),
        false => starts.iter().map(|s| (*s).into()).collect(),
    };
    let outputs = match flag("include_outputs_to_sub_graph") {
        true => ends.iter().map(|e| (*e).into()).collect(),
        false => {
            let parents = ends.iter().flat_map(|e| model.node(*e).inputs().to_vec());
            parents.filter(|v| inner.contains(&v.node)).collect()
        }
    };
    Ok(Match { name: id.to_string(), inputs, outputs })
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
    let mut stack: Vec<NodeId> = ends.iter().filter(|e| !starts.contains(e)).copied().collect();
    let mut seen: HashSet<NodeId> = stack.iter().copied().collect();
    while let Some(id) = stack.pop() {
        let node = model.node(id);
        if node.op().is::<Parameter>() {
            return Err(Error::invalid(format!("input `{}` of the model lies inside of the match", node.name())));
        }
        inner.insert(id);
        for v in node.inputs() {
            if !starts.contains(&v.node) && seen.insert(v.node) {
                stack.push(v.node);
            }
        }
    }
    Ok(inner)
}

fn by_scope(model: &Model, entry: &Json) -> Result<Vec<Match>> {
    let pattern = |text: &str| Regex::new(text).map_err(|e| Error::invalid(format!("pattern `{text}`: {e}")));
    let mut found = Vec::new();
    for instance in names(entry.get("instances"), "instances")? {
        let scope = pattern(&format!("^(?:{instance})"))?;
        let inside: Vec<NodeId> = model.nodes().filter(|(_, n)| scope.is_match(n.name())).map(|(id, _)| id).collect();
        if inside.is_empty() {
            continue;
        }
        let place = |item: &Json| -> Result<(NodeId, usize)> {
            let node = item.get("node").and_then(Json::as_str);
            let node = node.ok_or_else(|| Error::invalid("a port needs `node` and `port`"))?;
            let port = item.get("port").and_then(Json::as_u64).unwrap_or(0) as usize;
            let node_pattern = pattern(node)?;
            let like: Vec<NodeId> =
                inside.iter().copied().filter(|id| node_pattern.is_match(model.node(*id).name())).collect();
            match like.as_slice() {
                [one] => Ok((*one, port)),
                many => Err(Error::invalid(format!("`{node}` matches {} nodes of scope `{instance}`", many.len()))),
            }
        };
        let list = |key: &str| entry.get(key).and_then(Json::as_array).cloned().unwrap_or_default();
        let mut inputs = Vec::new();
        for consumers in list("inputs") {
            let first = consumers.as_array().and_then(|c| c.first()).cloned();
            let (node, port) = place(&first.ok_or_else(|| Error::invalid("`inputs` is a list of lists of ports"))?)?;
            let value = model.input(node, port);
            inputs.push(
                value.ok_or_else(|| Error::invalid(format!("`{}` has no input {port}", model.node(node).name())))?,
            );
        }
        let mut outputs = Vec::new();
        for item in list("outputs") {
            let (node, port) = place(&item)?;
            if port >= model.node(node).outputs().len() {
                return Err(Error::invalid(format!("`{}` has no output {port}", model.node(node).name())));
            }
            outputs.push(Value { node, port });
        }
        found.push(Match { name: instance.trim_end_matches('/').to_string(), inputs, outputs });
    }
    Ok(found)
}

// JSON values as attributes.
fn attributes(json: Option<&Json>) -> Result<AttrMap> {
    let mut attrs = AttrMap::new();
    let Some(json) = json else { return Ok(attrs) };
    let object = json.as_object().ok_or_else(|| Error::invalid("`custom_attributes` must be an object"))?;
    for (name, value) in object {
        attrs.set(
            name,
            attribute(value).ok_or_else(|| Error::invalid(format!("attribute `{name}` = {value} has no form")))?,
        );
    }
    Ok(attrs)
}

fn attribute(value: &Json) -> Option<AttrValue> {
    Some(match value {
        Json::Bool(b) => AttrValue::Bool(*b),
        Json::Number(n) => n.as_i64().map(AttrValue::Int).or_else(|| n.as_f64().map(AttrValue::Float))?,
        Json::String(s) => AttrValue::Text(s.clone()),
        Json::Array(list) => {
            if let Some(ints) = list.iter().map(Json::as_i64).collect::<Option<Vec<_>>>() {
                AttrValue::Ints(ints)
            } else if let Some(floats) = list.iter().map(Json::as_f64).collect::<Option<Vec<_>>>() {
                AttrValue::Floats(floats)
            } else {
                AttrValue::Strs(list.iter().map(|s| s.as_str().map(str::to_string)).collect::<Option<_>>()?)
            }
        }
        Json::Null | Json::Object(_) => return None,
    })
}
