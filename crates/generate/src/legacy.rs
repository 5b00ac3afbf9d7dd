//! The JSON of the Model Extension Generator of 2018 to 2020: sections `mo_tf_extractor`, `mo_caffe_extractor`,
//! `mo_mxnet_extractor`, `mo_op` and `ie_op`. Each section asks for a part; together they fill the same answers.

use crate::answers::{Answers, Attribute, Framework, Kind, Layout, Literal, ShapeRule, Source};
use crate::config::{bool_of, default_of, known, list, object, text_of, word, wrong};
use carafe_graph::Result;
use serde_json::{Map, Value};

const SECTIONS: &[&str] = &["mo_tf_extractor", "mo_caffe_extractor", "mo_mxnet_extractor", "mo_op", "ie_op"];

/// Whether a configuration is one of the old generator.
pub(crate) fn is_legacy(map: &Map<String, Value>) -> bool {
    map.keys().any(|k| SECTIONS.contains(&k.as_str()))
}

pub(crate) fn read(map: &Map<String, Value>, answers: &mut Answers) -> Result<()> {
    known(map, SECTIONS, "$")?;
    answers.layout = Layout::Extgen;
    let mut name = None;
    for (key, framework) in [
        ("mo_tf_extractor", Framework::TensorFlow),
        ("mo_caffe_extractor", Framework::Caffe),
        ("mo_mxnet_extractor", Framework::Mxnet),
    ] {
        let Some(section) = map.get(key) else { continue };
        let at = format!("$.{key}");
        let section = object(section, &at)?;
        let keys = [
            "op",
            "op_class_name",
            "op_class_path",
            "all_copy",
            "allCopy",
            "pythonic",
            "module",
            "param_name",
            "rename",
            "flatten",
            "omitDefault",
            "custom",
            "params",
        ];
        known(section, &keys, &at)?;
        let op = op(section, &at)?;
        let flag = |key: &str| section.get(key).map_or(Ok(false), |v| bool_of(v, &format!("{at}.{key}")));
        let mut source = Source::new(framework, &op);
        if flag("pythonic")? {
            let module = section.get("module").ok_or_else(|| wrong(&at, "a Python layer needs `module`"))?;
            source.op_type = format!("{}.{op}", text_of(module, &format!("{at}.module"))?);
        }
        if flag("custom")? {
            source.domain = Some("Custom".into());
        }
        answers.read_from(source);
        name.get_or_insert(op);
        for a in params(section, &at, "old_name", Some("new_name"))? {
            merge(&mut answers.attributes, a);
        }
    }
    if let Some(section) = map.get("mo_op") {
        let section = object(section, "$.mo_op")?;
        known(
            section,
            &["op", "pythonic", "change_shape", "has_infer", "supported_attrs", "internal_attrs"],
            "$.mo_op",
        )?;
        name = Some(op(section, "$.mo_op")?);
        if section.get("change_shape").map_or(Ok(false), |v| bool_of(v, "$.mo_op.change_shape"))? {
            answers.shape = ShapeRule::Custom;
            answers.elementwise = false;
        }
        for key in ["supported_attrs", "internal_attrs"] {
            let names = section.get(key).map_or(Ok(vec![]), |v| list(v, &format!("$.mo_op.{key}"), text_of))?;
            for attr in names {
                merge(&mut answers.attributes, untyped(attr.clone()));
                if key == "internal_attrs" {
                    answers.attributes.iter_mut().filter(|a| a.name == attr).for_each(|a| a.internal = true);
                }
            }
        }
    }
    if let Some(section) = map.get("ie_op") {
        let section = object(section, "$.ie_op")?;
        known(section, &["op", "pythonic", "plugin", "params"], "$.ie_op")?;
        name.get_or_insert(op(section, "$.ie_op")?);
        let plugin = section.get("plugin").map_or(Ok("cpu".into()), |v| text_of(v, "$.ie_op.plugin"))?;
        match plugin.as_str() {
            "cpu" => answers.cpu = true,
            "cldnn" | "gpu" => answers.gpu = true,
            other => return Err(wrong("$.ie_op.plugin", format!("`{other}` is no plugin; there are cpu and cldnn"))),
        }
        for a in params(section, "$.ie_op", "name", None)? {
            merge(&mut answers.attributes, a);
        }
    }
    answers.name = name.unwrap_or_default();
    Ok(())
}

fn op(section: &Map<String, Value>, at: &str) -> Result<String> {
    let op = section.get("op").ok_or_else(|| wrong(at, "`op` is missing"))?;
    text_of(op, &format!("{at}.op"))
}

// The old generator had parameters without a type: a number is the commonest.
fn untyped(name: String) -> Attribute {
    Attribute { default: Some(Literal::Float(0.0)), ..Attribute::new(name, Kind::Float) }
}

fn params(section: &Map<String, Value>, at: &str, theirs: &str, ours: Option<&str>) -> Result<Vec<Attribute>> {
    let Some(all) = section.get("params") else { return Ok(vec![]) };
    list(all, &format!("{at}.params"), |v, at| {
        let map = object(v, at)?;
        let mut keys = vec![theirs, "type", "default"];
        keys.extend(ours);
        known(map, &keys, at)?;
        let old = map.get(theirs).ok_or_else(|| wrong(at, format!("`{theirs}` is missing")))?;
        let old = text_of(old, &format!("{at}.{theirs}"))?;
        let new = ours.and_then(|key| map.get(key)).map(|v| text_of(v, &format!("{at}.new_name"))).transpose()?;
        // A name of one word in the file of a nested parameter gives its last part.
        let name = new.unwrap_or_else(|| old.rsplit('.').next().unwrap_or_default().to_string());
        let default = map.get("default");
        let kind = match (map.get("type"), default) {
            (Some(v), _) => word(v, &format!("{at}.type"))?,
            (None, Some(Value::String(text))) => Attribute::parse(&format!("x={text}"))?.kind,
            (None, Some(Value::Bool(_))) => Kind::Bool,
            (None, Some(v)) if v.is_i64() => Kind::Int,
            (None, _) => Kind::Float,
        };
        let otherwise = match kind {
            Kind::Int => Literal::Int(0),
            Kind::Float => Literal::Float(0.0),
            Kind::Bool => Literal::Bool(false),
            Kind::Str => Literal::Str(String::new()),
            Kind::Ints => Literal::Ints(vec![]),
            Kind::Floats => Literal::Floats(vec![]),
            Kind::Strs => Literal::Strs(vec![]),
        };
        let default = default.map_or(Ok(otherwise), |v| default_of(v, kind, &format!("{at}.default")))?;
        let source = (old != name).then_some(old);
        Ok(Attribute { source, default: Some(default), ..Attribute::new(name, kind) })
    })
}

// Sections name the same attributes: the first that knows a type says it.
fn merge(all: &mut Vec<Attribute>, a: Attribute) {
    match all.iter_mut().find(|b| b.name == a.name) {
        Some(b) if Attribute { internal: false, ..b.clone() } == untyped(b.name.clone()) => {
            *b = Attribute { internal: b.internal, ..a };
        }
        Some(_) => {}
        None => all.push(a),
    }
}

#[cfg(test)]
mod tests {
    use crate::answers::{Answers, Kind, Layout, Literal};
    use crate::config::from_json;

    #[test]
    fn a_file_of_the_old_generator_is_read() {
        let text = r#"{
            "mo_tf_extractor": {"op": "cosh", "op_class_name": "coshOp", "op_class_path": "ops.cosh", "all_copy": false,
                "params": [{"old_name": "alpha", "new_name": "slope", "type": "f"}]},
            "mo_caffe_extractor": {"op": "MyLayer", "pythonic": true, "module": "m"},
            "mo_mxnet_extractor": {"op": "MyOp", "custom": true, "allCopy": true, "params": []},
            "mo_op": {"op": "cosh", "change_shape": false, "has_infer": true, "supported_attrs": ["slope", "beta"], "internal_attrs": ["beta"]},
            "ie_op": {"op": "cosh", "plugin": "cldnn", "params": [{"name": "beta", "type": "int", "default": "1"}]}
        }"#;
        let mut a = Answers::new("");
        from_json(text, &mut a).unwrap();
        a.check().unwrap();
        assert_eq!((a.name.as_str(), a.layout, a.gpu, a.cpu), ("cosh", Layout::Extgen, true, false));
        let types: Vec<&str> = a.sources.iter().map(|s| s.op_type.as_str()).collect();
        assert_eq!(types, ["cosh", "m.MyLayer", "MyOp"]);
        assert_eq!(a.sources[2].domain.as_deref(), Some("Custom"));
        assert_eq!((a.attributes[0].name.as_str(), a.attributes[0].source.as_deref()), ("slope", Some("alpha")));
        assert_eq!((a.attributes[1].kind, a.attributes[1].default.clone()), (Kind::Int, Some(Literal::Int(1))));
    }

    #[test]
    fn a_mistake_in_it_is_told_with_its_path() {
        for (text, wanted) in [
            (r#"{"mo_op": {}}"#, "$.mo_op: `op` is missing"),
            (r#"{"ie_op": {"op": "x", "plugin": "fpga"}}"#, "$.ie_op.plugin: `fpga` is no plugin"),
            (r#"{"mo_caffe_extractor": {"op": "x", "pythonic": true}}"#, "a Python layer needs `module`"),
            (r#"{"mo_op": {"op": "x"}, "name": "y"}"#, "$: there is no key `name`"),
            (
                r#"{"ie_op": {"op": "x", "params": [{"name": "a", "type": "tensor"}]}}"#,
                "$.ie_op.params[0].type: `tensor` is no type",
            ),
        ] {
            let e = from_json(text, &mut Answers::new("")).unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        }
    }
}
