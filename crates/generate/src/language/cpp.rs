//! C++: members of the operation and its declaration.

use super::Fragments;
use crate::answers::{Answers, Attribute, Kind, Literal};
use crate::names::field;

pub(super) fn fragments(answers: &Answers) -> Fragments {
    let ports = answers.inputs.iter().map(|n| format!(".input(\"{n}\")"));
    let ports = ports.chain(answers.outputs.iter().map(|n| format!(".output(\"{n}\")")));
    Fragments::default()
        .lines(
            "fields",
            answers.attributes.iter().map(|a| format!("{} {}; // EDIT: what it means.", ty(a.kind), field(&a.name))),
        )
        .lines("creates", answers.attributes.iter().map(created))
        .lines("decl_ports", ports)
        .lines("decl_attrs", answers.attributes.iter().map(declared))
}

fn ty(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "int64_t",
        Kind::Float => "double",
        Kind::Bool => "bool",
        Kind::Str => "std::string",
        Kind::Ints => "std::vector<int64_t>",
        Kind::Floats => "std::vector<double>",
        Kind::Strs => "std::vector<std::string>",
    }
}

fn created(a: &Attribute) -> String {
    let default = a.default.as_ref().map(|d| format!(", {}", literal(d))).unwrap_or_default();
    format!("{} = attrs.get<{}>(\"{}\"{default});", field(&a.name), ty(a.kind), a.name)
}

fn declared(a: &Attribute) -> String {
    const DOC: &str = "\"EDIT: what it means.\"";
    match &a.default {
        Some(d) => {
            let word = if a.internal { "internal" } else { "attr" };
            format!(".{word}(carafe::Attr(\"{}\", {}), {DOC})", a.name, literal(d))
        }
        None => {
            let kind = match a.kind {
                Kind::Int => "INT",
                Kind::Float => "FLOAT",
                Kind::Bool => "BOOL",
                Kind::Str => "STR",
                Kind::Ints => "INTS",
                Kind::Floats => "FLOATS",
                Kind::Strs => "STRS",
            };
            format!(".required(\"{}\", CARAFE_ATTR_{kind}, {DOC})", a.name)
        }
    }
}

fn literal(value: &Literal) -> String {
    let list = |kind: Kind, items: Vec<String>| format!("{}{{{}}}", ty(kind), items.join(", "));
    match value {
        Literal::Int(i) => format!("int64_t{{{i}}}"),
        Literal::Float(x) => format!("{x:?}"),
        Literal::Bool(b) => b.to_string(),
        Literal::Str(s) => format!("std::string(\"{s}\")"),
        Literal::Ints(v) => list(Kind::Ints, v.iter().map(i64::to_string).collect()),
        Literal::Floats(v) => list(Kind::Floats, v.iter().map(|x| format!("{x:?}")).collect()),
        Literal::Strs(v) => list(Kind::Strs, v.iter().map(|s| format!("\"{s}\"")).collect()),
    }
}
