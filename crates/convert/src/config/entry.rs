//! The entries of a replacement file, read and checked before any model is looked at.

use carafe_graph::{AttrMap, AttrValue, Error, Result};
use serde_json::Value as Json;

/// What a file of replacements says.
#[derive(Clone, Debug, Default)]
pub struct ReplacementFile {
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) kind: Kind,
    /// Replaces the match by one node of this operation.
    pub(super) op: Option<String>,
    pub(super) attrs: AttrMap,
    pub(super) json: String,
    /// Extension library that brings the replacement.
    library: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Points {
        starts: Vec<String>,
        ends: Vec<String>,
        include_inputs: bool,
        include_outputs: bool,
    },
    Scope {
        instances: Vec<String>,
        /// For each value that comes in, the ports that read it. `None`: whatever comes in.
        inputs: Option<Vec<Vec<Port>>>,
        outputs: Option<Vec<Port>>,
    },
    General,
}

/// A node of a scope by pattern, and one of its ports.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) node: String,
    pub(super) port: usize,
}

const KEYS: &[&str] = &[
    "id",
    "match_kind",
    "instances",
    "custom_attributes",
    "op",
    "inputs",
    "outputs",
    "include_inputs_to_sub_graph",
    "include_outputs_to_sub_graph",
    "library",
];

impl ReplacementFile {
    /// Reads the JSON text of such a file.
    pub fn parse(text: &str) -> Result<ReplacementFile> {
        let entries: Json = serde_json::from_str(text).map_err(|e| Error::invalid(format!("not valid JSON: {e}")))?;
        let Json::Array(entries) = entries else { return Err(Error::invalid("expected a list of replacements")) };
        let entries = entries.iter().enumerate().map(|(i, json)| {
            let id = json.get("id").and_then(Json::as_str);
            let id = id.ok_or_else(|| Error::invalid(format!("entry {i} has no `id`")))?;
            Entry::read(id, json).map_err(|e| e.at(format!("replacement `{id}`")))
        });
        Ok(ReplacementFile { entries: entries.collect::<Result<_>>()? })
    }
    /// Extension libraries that the entries name.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|e| e.library.as_deref())
    }
    /// Ids of entries that only turn something on.
    pub fn turned_on(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|e| e.op.is_none() && matches!(e.kind, Kind::General)).map(|e| e.id.as_str())
    }
}

impl Entry {
    fn read(id: &str, json: &Json) -> Result<Entry> {
        if let Some(key) = json.as_object().and_then(|o| o.keys().find(|k| !KEYS.contains(&k.as_str()))) {
            return Err(Error::invalid(format!("`{key}` is no key of an entry; known: {}", KEYS.join(", "))));
        }
        let text = |key: &str| match json.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(s)) => Ok(Some(s.clone())),
            Some(other) => Err(Error::invalid(format!("`{key}` must be a text, found {other}"))),
        };
        let flag = |key: &str| match json.get(key) {
            None => Ok(true),
            Some(value) => {
                value.as_bool().ok_or_else(|| Error::invalid(format!("`{key}` must be true or false, found {value}")))
            }
        };
        let op = text("op")?;
        let kind = match text("match_kind")?.as_deref() {
            Some("points") => {
                let points = json.get("instances").ok_or_else(|| Error::invalid("`instances` is missing"))?;
                Kind::Points {
                    starts: names(points.get("start_points"), "start_points")?,
                    ends: names(points.get("end_points"), "end_points")?,
                    include_inputs: flag("include_inputs_to_sub_graph")?,
                    include_outputs: flag("include_outputs_to_sub_graph")?,
                }
            }
            Some("scope") => {
                let inputs = json.get("inputs").map(|list| {
                    let list = list.as_array().ok_or_else(|| Error::invalid("`inputs` is a list of lists of ports"));
                    list?.iter().map(|consumers| ports(consumers, "inputs")).collect::<Result<Vec<_>>>()
                });
                let outputs = json.get("outputs").map(|list| ports(list, "outputs"));
                let (inputs, outputs) = (inputs.transpose()?, outputs.transpose()?);
                Kind::Scope { instances: names(json.get("instances"), "instances")?, inputs, outputs }
            }
            Some("general") if op.is_some() => {
                return Err(Error::invalid("a `general` entry matches no nodes, so it has no `op`"));
            }
            Some("general") => Kind::General,
            Some(other) => {
                return Err(Error::invalid(format!("`match_kind` is `{other}`; known: points, scope, general")));
            }
            None => return Err(Error::invalid("`match_kind` is missing; known: points, scope, general")),
        };
        let custom = json.get("custom_attributes");
        let raw = custom.map_or_else(|| "{}".to_string(), Json::to_string);
        Ok(Entry { id: id.to_string(), kind, op, attrs: attributes(custom)?, json: raw, library: text("library")? })
    }
}

fn names(list: Option<&Json>, what: &str) -> Result<Vec<String>> {
    let bad = || Error::invalid(format!("`{what}` must be a list of names"));
    let list = list.and_then(Json::as_array).ok_or_else(bad)?;
    list.iter().map(|n| n.as_str().map(str::to_string).ok_or_else(bad)).collect()
}

fn ports(list: &Json, what: &str) -> Result<Vec<Port>> {
    let bad = || Error::invalid(format!("`{what}` needs ports, each with `node` (a pattern) and `port`"));
    let list = list.as_array().ok_or_else(bad)?;
    let ports = list.iter().map(|item| {
        let node = item.get("node").and_then(Json::as_str).ok_or_else(bad)?;
        let port = item.get("port").map_or(Some(0), Json::as_u64).ok_or_else(bad)?;
        Ok(Port { node: node.to_string(), port: usize::try_from(port).map_err(|_| bad())? })
    });
    ports.collect()
}

// JSON values as attributes. An object, or a list of lists, has no form among attributes and stays text.
fn attributes(json: Option<&Json>) -> Result<AttrMap> {
    let mut attrs = AttrMap::new();
    let Some(json) = json else { return Ok(attrs) };
    let object = json.as_object().ok_or_else(|| Error::invalid("`custom_attributes` must be an object"))?;
    for (name, value) in object.iter().filter(|(_, v)| !v.is_null()) {
        attrs.set(name, attribute(value).unwrap_or_else(|| AttrValue::Text(value.to_string())));
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
