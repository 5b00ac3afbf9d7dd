//! Fills in what comes into and goes out of a scope (`--tensorflow_custom_operations_config_update`), so that a user need
//! not find out by hand. It looks at the first instance that is there; the others must be built alike.

use super::matching::{crossing, leaving, nodes_of, pattern};
use carafe_graph::{Error, Model, NodeId, Result};
use serde_json::{Value as Json, json};

/// The text of a replacement file with `inputs` and `outputs` of its scopes as they are in this graph.
pub fn update_config(model: &Model, text: &str) -> Result<String> {
    // What is wrong with the file is told as when it is used.
    super::ReplacementFile::parse(text)?;
    let mut all: Json = serde_json::from_str(text).map_err(|e| Error::invalid(format!("not valid JSON: {e}")))?;
    for entry in all.as_array_mut().into_iter().flatten() {
        if entry.get("match_kind").and_then(Json::as_str) == Some("scope") {
            let id = entry.get("id").and_then(Json::as_str).unwrap_or_default().to_string();
            update(model, entry).map_err(|e| e.at(format!("replacement `{id}`")))?;
        }
    }
    let pretty = serde_json::to_string_pretty(&all).map_err(|e| Error::invalid(e.to_string()))?;
    Ok(pretty + "\n")
}

fn update(model: &Model, entry: &mut Json) -> Result<()> {
    let instances: Vec<String> = entry
        .get("instances")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(|i| i.as_str().map(str::to_string))
        .collect();
    for instance in &instances {
        let nodes = nodes_of(model, instance)?;
        if nodes.is_empty() {
            continue;
        }
        let name = |id: NodeId| unique_end(model, &nodes, instance, id);
        let inputs = crossing(model, &nodes).into_iter().map(|(_, ports)| {
            let ports = ports.into_iter().map(|(id, port)| Ok(json!({"node": name(id)?, "port": port})));
            ports.collect::<Result<Vec<Json>>>().map(Json::Array)
        });
        let outputs = leaving(model, &nodes).into_iter().map(|v| Ok(json!({"node": name(v.node)?, "port": v.port})));
        entry["inputs"] = Json::Array(inputs.collect::<Result<_>>()?);
        entry["outputs"] = Json::Array(outputs.collect::<Result<_>>()?);
        return Ok(());
    }
    Err(Error::not_found(format!("no instance is in this model: {}", instances.join(", "))))
}

// How the name ends, as a pattern: what follows the instance, and as much before it as tells the node from others.
fn unique_end(model: &Model, nodes: &[NodeId], instance: &str, id: NodeId) -> Result<String> {
    let name = model.node(id).name();
    let begins = pattern(&format!("^(?:{instance})"))?.find(name).map_or(0, |m| m.end());
    let mut at = if begins >= name.len() { 0 } else { begins };
    loop {
        let end = format!("{}$", regex::escape(&name[at..]));
        let fits = pattern(&end)?;
        let n = nodes.iter().filter(|n| fits.is_match(model.node(**n).name())).count();
        if n == 1 {
            return Ok(end);
        }
        if at == 0 {
            return Err(Error::invalid(format!("{n} nodes of `{instance}` have a name that ends as `{name}`")));
        }
        at = name[..at].char_indices().next_back().map_or(0, |(i, _)| i);
    }
}
