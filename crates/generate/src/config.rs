//! Answers as JSON. Unknown keys and wrong kinds are errors that say where in the file.

use crate::answers::{Answers, Attribute, Kind, Literal, Source};
use crate::legacy;
use carafe_graph::{Error, Result};
use serde_json::{Map, Value, json};
use std::str::FromStr;

const KEYS: &[&str] = &[
    "name",
    "doc",
    "opset",
    "language",
    "layout",
    "frameworks",
    "attributes",
    "inputs",
    "outputs",
    "elementwise",
    "shape",
    "kernels",
    "generated",
];

/// Reads a configuration, of this generator or of the old one, over answers that stand already.
pub fn from_json(text: &str, answers: &mut Answers) -> Result<()> {
    let value: Value = serde_json::from_str(text).map_err(|e| Error::usage(format!("not JSON: {e}")))?;
    let map = object(&value, "$")?;
    if legacy::is_legacy(map) {
        return legacy::read(map, answers);
    }
    known(map, KEYS, "$")?;
    if let Some(v) = map.get("name") {
        answers.name = text_of(v, "$.name")?;
    }
    if let Some(v) = map.get("doc") {
        answers.doc = text_of(v, "$.doc")?;
    }
    if let Some(v) = map.get("opset") {
        answers.opset = text_of(v, "$.opset")?;
    }
    if let Some(v) = map.get("language") {
        answers.language = word(v, "$.language")?;
    }
    if let Some(v) = map.get("layout") {
        answers.layout = word(v, "$.layout")?;
    }
    if let Some(v) = map.get("shape") {
        answers.shape = word(v, "$.shape")?;
    }
    for (key, ports) in [("inputs", &mut answers.inputs), ("outputs", &mut answers.outputs)] {
        if let Some(v) = map.get(key) {
            *ports = list(v, &format!("$.{key}"), text_of)?;
        }
    }
    if let Some(v) = map.get("kernels") {
        let kernels = list(v, "$.kernels", |v, at| {
            let word = text_of(v, at)?.to_ascii_lowercase();
            match word.as_str() {
                "cpu" | "gpu" | "vpu" => Ok(word),
                _ => Err(wrong(at, format!("`{word}` is no device with kernels; there are cpu, gpu, vpu"))),
            }
        })?;
        let has = |device: &str| kernels.iter().any(|k| k == device);
        (answers.cpu, answers.gpu, answers.vpu) = (has("cpu"), has("gpu"), has("vpu"));
    }
    if let Some(v) = map.get("attributes") {
        answers.attributes = list(v, "$.attributes", attribute)?;
    }
    let name = answers.name.clone();
    if let Some(v) = map.get("frameworks") {
        answers.sources = list(v, "$.frameworks", |v, at| source(v, at, &name))?;
    }
    answers.elementwise = match map.get("elementwise") {
        Some(v) => v.as_bool().ok_or_else(|| kind(v, "$.elementwise", "true or false"))?,
        None => (answers.inputs.len(), answers.outputs.len()) == (1, 1) && answers.shape.word() == "same",
    };
    // What the file leaves out may still come from elsewhere: a name for one.
    let named =
        Answers { name: if answers.name.is_empty() { "X".into() } else { answers.name.clone() }, ..answers.clone() };
    match named.fault() {
        Some(fault) if map.contains_key(fault.at.split(['.', '[']).next().unwrap_or_default()) => {
            Err(wrong(&format!("$.{}", fault.at), fault.what))
        }
        _ => Ok(()),
    }
}

/// The configuration that gives these answers.
pub fn to_json(a: &Answers) -> Value {
    let source = |s: &Source| {
        let mut v = json!({"framework": s.framework.word(), "type": s.op_type});
        s.domain.iter().for_each(|d| v["domain"] = json!(d));
        v
    };
    let attribute = |a: &Attribute| {
        let mut v = json!({"name": a.name, "type": a.kind.word()});
        a.source.iter().for_each(|s| v["source"] = json!(s));
        a.default.iter().for_each(|d| v["default"] = literal(d));
        if a.internal {
            v["internal"] = json!(true);
        }
        v
    };
    let kernels: Vec<&str> =
        [("cpu", a.cpu), ("gpu", a.gpu), ("vpu", a.vpu)].into_iter().filter(|k| k.1).map(|k| k.0).collect();
    json!({
        "name": a.name, "doc": a.doc, "opset": a.opset, "language": a.language.word(), "layout": a.layout.word(),
        "frameworks": a.sources.iter().map(source).collect::<Vec<_>>(),
        "attributes": a.attributes.iter().map(attribute).collect::<Vec<_>>(),
        "inputs": a.inputs, "outputs": a.outputs, "elementwise": a.elementwise, "shape": a.shape.word(), "kernels": kernels,
    })
}

fn literal(value: &Literal) -> Value {
    match value {
        Literal::Int(i) => json!(i),
        Literal::Float(x) => json!(x),
        Literal::Bool(b) => json!(b),
        Literal::Str(s) => json!(s),
        Literal::Ints(v) => json!(v),
        Literal::Floats(v) => json!(v),
        Literal::Strs(v) => json!(v),
    }
}

fn source(v: &Value, at: &str, name: &str) -> Result<Source> {
    if v.is_string() {
        return Ok(Source::new(word(v, at)?, name));
    }
    let map = object(v, at)?;
    known(map, &["framework", "type", "domain"], at)?;
    let framework = map.get("framework").ok_or_else(|| wrong(at, "`framework` is missing"))?;
    let op_type = map.get("type").map(|v| text_of(v, &format!("{at}.type"))).transpose()?;
    let domain = map.get("domain").map(|v| text_of(v, &format!("{at}.domain"))).transpose()?;
    Ok(Source {
        framework: word(framework, &format!("{at}.framework"))?,
        op_type: op_type.unwrap_or_else(|| name.to_string()),
        domain,
    })
}

fn attribute(v: &Value, at: &str) -> Result<Attribute> {
    if let Value::String(text) = v {
        return Attribute::parse(text).map_err(|e| wrong(at, e.message()));
    }
    let map = object(v, at)?;
    known(map, &["name", "source", "type", "default", "internal"], at)?;
    let name = map.get("name").ok_or_else(|| wrong(at, "`name` is missing"))?;
    let kind: Kind = match map.get("type") {
        Some(v) => word(v, &format!("{at}.type"))?,
        None => return Err(wrong(at, "`type` is missing")),
    };
    let default = map.get("default").map(|v| default_of(v, kind, &format!("{at}.default"))).transpose()?;
    let internal = match map.get("internal") {
        Some(v) => v.as_bool().ok_or_else(|| self::kind(v, &format!("{at}.internal"), "true or false"))?,
        None => false,
    };
    Ok(Attribute {
        name: text_of(name, &format!("{at}.name"))?,
        source: map.get("source").map(|v| text_of(v, &format!("{at}.source"))).transpose()?,
        kind,
        default,
        internal,
    })
}

/// A value of a kind; a text is read as on the command line.
pub(crate) fn default_of(v: &Value, kind: Kind, at: &str) -> Result<Literal> {
    let bad = || self::kind(v, at, kind.word());
    if let (Value::String(text), false) = (v, kind == Kind::Str) {
        return Literal::parse(kind, text).map_err(|e| wrong(at, e.message()));
    }
    fn all<T>(v: &Value, f: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        v.as_array()?.iter().map(f).collect()
    }
    Ok(match kind {
        Kind::Int => Literal::Int(v.as_i64().ok_or_else(bad)?),
        Kind::Float => Literal::Float(v.as_f64().ok_or_else(bad)?),
        Kind::Bool => Literal::Bool(v.as_bool().ok_or_else(bad)?),
        Kind::Str => Literal::Str(v.as_str().ok_or_else(bad)?.to_string()),
        Kind::Ints => Literal::Ints(all(v, Value::as_i64).ok_or_else(bad)?),
        Kind::Floats => Literal::Floats(all(v, Value::as_f64).ok_or_else(bad)?),
        Kind::Strs => Literal::Strs(all(v, |v| v.as_str().map(str::to_string)).ok_or_else(bad)?),
    })
}

/// An error with the path of the value.
pub(crate) fn wrong(at: &str, what: impl std::fmt::Display) -> Error {
    Error::usage(format!("{at}: {what}"))
}

fn kind(v: &Value, at: &str, expected: &str) -> Error {
    let found = match v {
        Value::Null => "null".into(),
        Value::Object(_) => "an object".into(),
        Value::Array(_) => "a list".into(),
        Value::String(s) => format!("the text `{s}`"),
        other => format!("`{other}`"),
    };
    wrong(at, format!("expected {expected}, found {found}"))
}

pub(crate) fn object<'v>(v: &'v Value, at: &str) -> Result<&'v Map<String, Value>> {
    v.as_object().ok_or_else(|| kind(v, at, "an object"))
}

pub(crate) fn known(map: &Map<String, Value>, keys: &[&str], at: &str) -> Result<()> {
    match map.keys().find(|k| !keys.contains(&k.as_str())) {
        Some(key) => Err(wrong(at, format!("there is no key `{key}`; there are {}", keys.join(", ")))),
        None => Ok(()),
    }
}

pub(crate) fn text_of(v: &Value, at: &str) -> Result<String> {
    v.as_str().map(str::to_string).ok_or_else(|| kind(v, at, "a text"))
}

pub(crate) fn bool_of(v: &Value, at: &str) -> Result<bool> {
    v.as_bool().ok_or_else(|| kind(v, at, "true or false"))
}

pub(crate) fn word<T: FromStr<Err = Error>>(v: &Value, at: &str) -> Result<T> {
    text_of(v, at)?.parse().map_err(|e: Error| wrong(at, e.message()))
}

pub(crate) fn list<T>(v: &Value, at: &str, item: impl Fn(&Value, &str) -> Result<T>) -> Result<Vec<T>> {
    let items = v.as_array().ok_or_else(|| kind(v, at, "a list"))?;
    items.iter().enumerate().map(|(i, v)| item(v, &format!("{at}[{i}]"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_gives_the_answers_that_wrote_it() {
        let text = r#"{"name": "Mix", "opset": "acme", "language": "c++", "inputs": ["a", "b"], "kernels": ["cpu", "vpu"],
            "frameworks": ["caffe", {"framework": "onnx", "type": "Mix2", "domain": "acme.ai"}],
            "attributes": ["alpha:float=0.5", {"name": "steps", "type": "ints", "default": [1, 2], "source": "s"}]}"#;
        let mut answers = Answers::new("");
        from_json(text, &mut answers).unwrap();
        assert!(!answers.elementwise && answers.vpu && !answers.gpu);
        let mut again = Answers::new("");
        from_json(&to_json(&answers).to_string(), &mut again).unwrap();
        assert_eq!(again, answers);
    }

    #[test]
    fn a_mistake_is_told_with_its_path() {
        for (text, wanted) in [
            ("{", "not JSON"),
            ("[]", "$: expected an object, found a list"),
            (r#"{"nam": 1}"#, "$: there is no key `nam`"),
            (r#"{"name": 1}"#, "$.name: expected a text, found `1`"),
            (r#"{"language": "go"}"#, "$.language: `go` is no language; there are rust, c, cpp"),
            (
                r#"{"attributes": [{"name": "a", "type": "int", "default": 0.5}]}"#,
                "$.attributes[0].default: expected int, found `0.5`",
            ),
            (r#"{"attributes": ["a:int", {"name": "b"}]}"#, "$.attributes[1]: `type` is missing"),
            (r#"{"frameworks": [{"type": "X"}]}"#, "$.frameworks[0]: `framework` is missing"),
            (r#"{"kernels": ["npu"]}"#, "$.kernels[0]: `npu` is no device"),
            (r#"{"inputs": []}"#, "$.inputs: an operation has at least one input"),
            (r#"{"outputs": ["a", "b c"]}"#, "$.outputs[1]: `b c` is no name of an output"),
            (r#"{"inputs": ["a", "b"], "elementwise": true}"#, "$.elementwise: an elementwise operation has one input"),
            (r#"{"shape": "custom", "elementwise": true}"#, "$.shape: an elementwise operation keeps the shape"),
            (r#"{"attributes": ["a:int", "a:float"]}"#, "$.attributes[1]: two attributes would be the field `a`"),
            (r#"{"attributes": [{"name": "a\"", "type": "int"}]}"#, "$.attributes[0].name: attribute `a\\\"`"),
            (
                r#"{"frameworks": ["onnx", {"framework": "caffe", "type": "a b"}]}"#,
                "$.frameworks[1].type: `a b` is no type",
            ),
            (r#"{"opset": "a b"}"#, "$.opset: `a b` is no name of an opset"),
        ] {
            let e = from_json(text, &mut Answers::new("X")).unwrap_err().to_string();
            assert!(e.contains(wanted), "{text}: {e}");
        }
    }
}
