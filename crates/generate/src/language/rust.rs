//! Rust: fields of the operation and how a rule fills them.

use super::{Fragments, readable};
use crate::answers::{Answers, Attribute, Framework, Kind, Literal};
use crate::names::field;

pub(super) fn fragments(answers: &Answers) -> Fragments {
    let samples: Vec<String> =
        answers.attributes.iter().map(|a| format!("{}: {}", field(&a.name), literal(&a.sample()))).collect();
    Fragments::default()
        .lines("fields", answers.attributes.iter().flat_map(declared))
        .text("sample_fields", samples.join(", "))
        .text("inputs", answers.inputs.join(", "))
        .text("outputs", answers.outputs.join(", "))
}

fn declared(a: &Attribute) -> [String; 3] {
    let mut words = vec![];
    if field(&a.name) != a.name {
        words.push(format!("name = \"{}\"", a.name));
    }
    words.extend(a.default.as_ref().map(|d| format!("default = {}", literal(d))));
    words.extend(a.internal.then(|| "internal".to_string()));
    let attr = if words.is_empty() { String::new() } else { format!("#[attr({})]", words.join(", ")) };
    ["/// EDIT: what it means.".into(), attr, format!("pub {}: {},", field(&a.name), ty(a.kind))]
}

pub(super) fn source_fields(answers: &Answers, framework: Framework) -> String {
    let line = |a: &Attribute| {
        let name = a.name_in(framework);
        let value = match (&a.default, readable(a, framework)) {
            (_, false) => format!(
                "{}, // EDIT: {} has it as an array, an input of this name",
                literal(&a.sample()),
                framework.title()
            ),
            (Some(d), true) => format!("n.attr(\"{name}\", {})?,", literal(d)),
            (None, true) => format!("n.required(\"{name}\")?,"),
        };
        format!("{}: {value}", field(&a.name))
    };
    answers.attributes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn ty(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "i64",
        Kind::Float => "f32",
        Kind::Bool => "bool",
        Kind::Str => "String",
        Kind::Ints => "Vec<i64>",
        Kind::Floats => "Vec<f32>",
        Kind::Strs => "Vec<String>",
    }
}

fn literal(value: &Literal) -> String {
    fn list<T>(v: &[T], show: impl Fn(&T) -> String) -> String {
        format!("vec![{}]", v.iter().map(show).collect::<Vec<_>>().join(", "))
    }
    match value {
        Literal::Int(i) => i.to_string(),
        // As the shortest text that gives this f32: a default is one.
        Literal::Float(x) => format!("{:?}", *x as f32),
        Literal::Bool(b) => b.to_string(),
        Literal::Str(s) => format!("\"{s}\".to_string()"),
        Literal::Ints(v) => list(v, i64::to_string),
        Literal::Floats(v) => list(v, |x| format!("{:?}", *x as f32)),
        Literal::Strs(v) => list(v, |s| format!("\"{s}\".to_string()")),
    }
}
