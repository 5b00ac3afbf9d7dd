//! Mappings without a compiler: one operation of a source format as one of ours, told by a JSON file (`--mapping`) or in a line
//! (`--map`). Everything that does not depend on a model is checked when they are read, and an error names the place in the file.

use carafe_frontend::{Mapping, split_name};
use carafe_graph::{Attr, AttrKind, AttrValue, Error, OpInfo, Registry, Result};
use carafe_tensor::{ElementType, PartialShape};
use serde_json::{Map, Value as Json};

const KEYS: &[&str] =
    &["from", "to", "framework", "domain", "attributes", "values", "from_inputs", "inputs", "outputs"];
const FORMATS: &[&str] = &["onnx", "tensorflow", "tflite", "caffe", "mxnet", "kaldi", "paddle"];

/// Reads a file of mappings: a list of entries with `from` (`Type` or `domain::Type`), `to` (`Type` or `opset::Type`) and, where
/// they are needed, `framework`, `domain`, `attributes` (ours by theirs), `values` (ours by constants), `from_inputs` (ours by the
/// number of a constant input), `inputs` and `outputs` (names of ports).
pub fn read_mappings(text: &str, registry: &Registry) -> Result<Vec<Mapping>> {
    let json: Json = serde_json::from_str(text).map_err(|e| Error::invalid(format!("not valid JSON: {e}")))?;
    let Json::Array(entries) = &json else {
        return Err(Error::invalid(format!("expected a list of mappings, found {}", kind_of(&json))));
    };
    entries.iter().enumerate().map(|(i, entry)| Entry { path: format!("[{i}]"), registry }.read(entry)).collect()
}

/// Reads one mapping in a line: `domain::Type=Operation(ours=theirs, ours=1.5)`. What is a JSON value is a constant, what is a
/// name is an attribute of the source.
pub fn read_mapping(text: &str, registry: &Registry) -> Result<Mapping> {
    let usage = || {
        Error::usage(format!(
            "`{text}` is no mapping; expected `Type=Operation` or `domain::Type=Operation(ours=theirs, ours=1.5)`"
        ))
    };
    let (from, to) = text.split_once('=').ok_or_else(usage)?;
    let (to, list) = match to.split_once('(') {
        Some((to, rest)) => (to, rest.trim_end().strip_suffix(')').ok_or_else(usage)?),
        None => (to, ""),
    };
    let (mut attributes, mut values) = (Map::new(), Map::new());
    for item in items(list).into_iter().map(str::trim).filter(|i| !i.is_empty()) {
        let (ours, theirs) = item.split_once('=').ok_or_else(usage)?;
        let (ours, theirs) = (ours.trim().to_string(), theirs.trim());
        match serde_json::from_str::<Json>(theirs) {
            Ok(value) => values.insert(ours, value),
            Err(_) if is_name(theirs) => attributes.insert(ours, theirs.into()),
            Err(_) => {
                return Err(Error::usage(format!(
                    "`{theirs}` is neither the name of an attribute nor a value; texts stand in quotes"
                ))
                .at(format!("mapping `{text}`")));
            }
        };
    }
    let entry = serde_json::json!({"from": from.trim(), "to": to.trim(), "attributes": attributes, "values": values});
    let mapping = Entry { path: String::new(), registry }.read(&entry);
    mapping.map_err(|e| e.at(format!("mapping `{text}`")))
}

// Split at commas outside of brackets and quotes.
fn items(list: &str) -> Vec<&str> {
    let (mut all, mut start, mut depth, mut quoted, mut escaped) = (vec![], 0, 0usize, false, false);
    for (i, c) in list.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                all.push(&list[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    all.push(&list[start..]);
    all
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.:/".contains(c))
}

/// One entry and where it stands.
struct Entry<'a> {
    path: String,
    registry: &'a Registry,
}

impl Entry<'_> {
    fn read(&self, json: &Json) -> Result<Mapping> {
        let Json::Object(entry) = json else { return Err(self.wrong("", "an object", json)) };
        if let Some(key) = entry.keys().find(|k| !KEYS.contains(&k.as_str())) {
            return Err(self.fail(key, format!("there is no such key; known: {}", KEYS.join(", "))));
        }
        let required = |key| self.text(entry, key)?.ok_or_else(|| self.fail(key, "is missing"));
        let (from, to) = (required("from")?, required("to")?);
        let class = self.class(to)?;
        let mut mapping = Mapping::new(to);
        // A type may have dots, as in Paddle; only `::` parts a domain.
        let (domain, from) = match from.rsplit_once("::") {
            Some((domain, from)) => (Some(domain), from),
            None => (None, from),
        };
        if from.is_empty() {
            return Err(self.fail("from", "names no type"));
        }
        let given = self.text(entry, "domain")?;
        if let (Some(a), Some(b)) = (domain, given)
            && a != b
        {
            return Err(self.fail("domain", format!("is `{b}`, and `from` says `{a}`")));
        }
        (mapping.domain, mapping.op_type) = (given.or(domain).map(str::to_string), Some(from.to_string()));
        if let Some(format) = self.text(entry, "framework")? {
            if !FORMATS.contains(&format.to_ascii_lowercase().as_str()) {
                return Err(self.fail("framework", format!("is `{format}`; known: {}", FORMATS.join(", "))));
            }
            mapping = mapping.framework(format);
        }
        for (ours, theirs) in self.object(entry, "attributes")? {
            let path = format!("attributes.{ours}");
            self.attribute(class, ours, &path)?;
            let Json::String(theirs) = theirs else {
                return Err(self.wrong(&path, "the name of a source attribute", theirs));
            };
            mapping = mapping.attr(ours, theirs);
        }
        for (ours, value) in self.object(entry, "values")? {
            let path = format!("values.{ours}");
            let kind = self.attribute(class, ours, &path)?;
            mapping = mapping.value(ours, self.value(class, kind, &path, value)?);
        }
        for (ours, input) in self.object(entry, "from_inputs")? {
            let path = format!("from_inputs.{ours}");
            self.attribute(class, ours, &path)?;
            let number = input.as_u64().and_then(|n| usize::try_from(n).ok());
            mapping = mapping
                .attr_from_input(ours, number.ok_or_else(|| self.wrong(&path, "the number of an input", input))?);
        }
        mapping.input_names = self.texts(entry, "inputs")?;
        mapping.output_names = self.texts(entry, "outputs")?;
        self.check_ports("inputs", mapping.input_names.len(), class, class.inputs)?;
        self.check_ports("outputs", mapping.output_names.len(), class, class.outputs)?;
        // What is said twice.
        mapping.clone().into_rule().map_err(|e| self.fail("", e.to_string()))?;
        Ok(mapping)
    }

    fn class(&self, op: &str) -> Result<&'static OpInfo> {
        let (opset, name) = split_name(op).map_err(|e| self.fail("to", e.to_string()))?;
        let found = opset.map_or_else(|| self.registry.newest(name), |opset| self.registry.find(name, opset));
        found.map(|f| f.info).ok_or_else(|| {
            let near = self.registry.near(name);
            let near = if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) };
            self.fail(
                "to",
                format!("there is no operation `{op}`{near}; an extension that brings it is given by --extension"),
            )
        })
    }

    // The kind of an attribute; none where the operation takes any.
    fn attribute(&self, class: &OpInfo, name: &str, path: &str) -> Result<Option<AttrKind>> {
        match class.attrs.iter().find(|a| a.name == name) {
            Some(a) => Ok(Some(a.kind)),
            None if class.any_attrs => Ok(None),
            None => {
                let known: Vec<&str> = class.attrs.iter().map(|a| a.name).collect();
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                Err(self.fail(path, format!("{} has no attribute `{name}`; it has: {known}", class.name)))
            }
        }
    }

    fn value(&self, class: &OpInfo, kind: Option<AttrKind>, path: &str, json: &Json) -> Result<AttrValue> {
        let wrong = |wanted: &str| self.wrong(path, &format!("{wanted} ({} takes that)", class.name), json);
        let text = || json.as_str();
        let list = |what: &str| json.as_array().ok_or_else(|| wrong(what));
        let parsed = |ok: bool, what: &str| match (ok, text()) {
            (true, Some(s)) => Ok(AttrValue::Text(s.to_string())),
            _ => Err(wrong(what)),
        };
        let reads = |s: &str| AttrValue::Text(s.to_string());
        Ok(match kind {
            None => natural(json).ok_or_else(|| wrong("a number, a text, a bool or a list of one kind"))?,
            Some(AttrKind::Bool) => AttrValue::Bool(json.as_bool().ok_or_else(|| wrong("true or false"))?),
            Some(AttrKind::Int) => AttrValue::Int(json.as_i64().ok_or_else(|| wrong("a whole number"))?),
            Some(AttrKind::Float) => AttrValue::Float(json.as_f64().ok_or_else(|| wrong("a number"))?),
            Some(AttrKind::Str) => AttrValue::Str(text().ok_or_else(|| wrong("a text"))?.to_string()),
            Some(AttrKind::Enum(words)) => {
                let word = text().filter(|s| words.iter().any(|w| w.eq_ignore_ascii_case(s)));
                AttrValue::Str(word.ok_or_else(|| wrong(&format!("one of {}", words.join(", "))))?.to_string())
            }
            Some(AttrKind::Ints) => {
                let what = "a list of whole numbers";
                let all: Option<Vec<i64>> = list(what)?.iter().map(Json::as_i64).collect();
                AttrValue::Ints(all.ok_or_else(|| wrong(what))?)
            }
            Some(AttrKind::Floats) => {
                let what = "a list of numbers";
                let all: Option<Vec<f64>> = list(what)?.iter().map(Json::as_f64).collect();
                AttrValue::Floats(all.ok_or_else(|| wrong(what))?)
            }
            Some(AttrKind::Strs) => {
                let what = "a list of texts";
                let all: Option<Vec<String>> = list(what)?.iter().map(|j| j.as_str().map(str::to_string)).collect();
                AttrValue::Strs(all.ok_or_else(|| wrong(what))?)
            }
            Some(AttrKind::Type) => {
                parsed(text().is_some_and(|s| ElementType::read(&reads(s)).is_ok()), "an element type such as \"f32\"")?
            }
            Some(AttrKind::Shape) => {
                parsed(text().is_some_and(|s| PartialShape::read(&reads(s)).is_ok()), "a shape such as \"1,3,?\"")?
            }
            Some(AttrKind::Types | AttrKind::Tensor | AttrKind::Body) => {
                return Err(
                    self.fail(path, "a constant of this kind cannot be written here; a rule in an extension can")
                );
            }
        })
    }

    fn check_ports(&self, key: &str, given: usize, class: &OpInfo, ports: &[carafe_graph::PortInfo]) -> Result<()> {
        let least = ports.iter().filter(|p| !p.optional && !p.variadic).count();
        let most = if ports.iter().any(|p| p.variadic) { usize::MAX } else { ports.len() };
        if given == 0 || (least..=most).contains(&given) {
            return Ok(());
        }
        let takes = match (least, most) {
            (a, b) if a == b => a.to_string(),
            (a, usize::MAX) => format!("{a} or more"),
            (a, b) => format!("{a} to {b}"),
        };
        Err(self.fail(key, format!("{given} are named, {} has {takes}", class.name)))
    }

    fn text<'j>(&self, entry: &'j Map<String, Json>, key: &str) -> Result<Option<&'j str>> {
        match entry.get(key) {
            None => Ok(None),
            Some(Json::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(key, "a text", other)),
        }
    }
    fn texts(&self, entry: &Map<String, Json>, key: &str) -> Result<Vec<String>> {
        let Some(json) = entry.get(key) else { return Ok(vec![]) };
        let list = json.as_array().and_then(|l| l.iter().map(|j| j.as_str().map(str::to_string)).collect());
        list.ok_or_else(|| self.wrong(key, "a list of names", json))
    }
    fn object<'j>(
        &self,
        entry: &'j Map<String, Json>,
        key: &str,
    ) -> Result<impl Iterator<Item = (&'j String, &'j Json)>> {
        match entry.get(key) {
            None => Ok(None.into_iter().flatten()),
            Some(Json::Object(map)) => Ok(Some(map.iter()).into_iter().flatten()),
            Some(other) => Err(self.wrong(key, "an object", other)),
        }
    }

    fn fail(&self, path: &str, message: impl Into<String>) -> Error {
        let dot = if path.is_empty() || self.path.is_empty() { "" } else { "." };
        match format!("{}{dot}{path}", self.path) {
            at if at.is_empty() => Error::invalid(message.into()),
            at => Error::invalid(message.into()).at(format!("`{at}`")),
        }
    }
    fn wrong(&self, path: &str, wanted: &str, found: &Json) -> Error {
        self.fail(path, format!("expected {wanted}, found {}", kind_of(found)))
    }
}

// A value as what it looks like.
fn natural(json: &Json) -> Option<AttrValue> {
    Some(match json {
        Json::Bool(b) => AttrValue::Bool(*b),
        Json::Number(n) => n.as_i64().map_or_else(|| AttrValue::Float(n.as_f64().unwrap_or_default()), AttrValue::Int),
        Json::String(s) => AttrValue::Str(s.clone()),
        Json::Array(list) => {
            let ints = list.iter().map(Json::as_i64).collect::<Option<_>>().map(AttrValue::Ints);
            let floats = || list.iter().map(Json::as_f64).collect::<Option<_>>().map(AttrValue::Floats);
            let texts =
                || list.iter().map(|j| j.as_str().map(str::to_string)).collect::<Option<_>>().map(AttrValue::Strs);
            ints.or_else(floats).or_else(texts)?
        }
        _ => return None,
    })
}

// A value in a few words.
fn kind_of(json: &Json) -> String {
    match json {
        Json::Array(_) => "a list".into(),
        Json::Object(_) => "an object".into(),
        other => other.to_string(),
    }
}
