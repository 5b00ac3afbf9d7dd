//! C: fields of the operation, how `create` fills and `release` frees them, and the table of attributes.

use super::Fragments;
use crate::answers::{Answers, Attribute, Kind, Literal};
use crate::names::field;

pub(super) fn fragments(answers: &Answers) -> Fragments {
    let ports = |names: &[String]| names.iter().map(|n| format!("{{\"{n}\", 0, 0}}")).collect::<Vec<_>>().join(", ");
    let fields = match answers.attributes.is_empty() {
        true => vec!["char unused; /* C has no empty struct. */".to_string()],
        false => answers.attributes.iter().map(declared).collect(),
    };
    let internal: Vec<String> =
        answers.attributes.iter().enumerate().filter(|(_, a)| a.internal).map(|(i, _)| i.to_string()).collect();
    let copies = |a: &Attribute| !matches!(a.kind, Kind::Int | Kind::Float | Kind::Bool);
    Fragments::default()
        .lines("fields", fields)
        .lines("creates", answers.attributes.iter().map(|a| created(a, &answers.file_name())))
        .lines("frees", answers.attributes.iter().filter_map(freed))
        .lines("attr_infos", infos(answers))
        .text("c_inputs", ports(&answers.inputs))
        .text("c_outputs", ports(&answers.outputs))
        .text("internal_attrs", internal.join(", "))
        .flag("copies", answers.attributes.iter().any(copies))
}

fn declared(a: &Attribute) -> String {
    let f = field(&a.name);
    let field = match a.kind {
        Kind::Int => format!("int64_t {f};"),
        Kind::Float => format!("double {f};"),
        Kind::Bool => format!("int {f};"),
        Kind::Str => format!("char *{f};"),
        Kind::Ints => format!("int64_t *{f};\nsize_t n_{f};"),
        Kind::Floats => format!("double *{f};\nsize_t n_{f};"),
        Kind::Strs => format!("char **{f};\nsize_t n_{f};"),
    };
    format!("{field} /* EDIT: what it means. */")
}

fn created(a: &Attribute, file: &str) -> String {
    let f = field(&a.name);
    let default = a.default.as_ref();
    let fail = format!("{{ {file}_release(op); return carafe_fail(carafe, CARAFE_IO, \"out of memory\"); }}");
    let get = format!("a = carafe_attr(attrs, \"{}\");\n", a.name);
    let list = |member: &str, ty: &str, values: Vec<String>| {
        let (own, n) = match values.is_empty() {
            true => ("NULL".to_string(), "0".to_string()),
            false => (format!("default_{f}"), values.len().to_string()),
        };
        let table = match values.is_empty() {
            true => String::new(),
            false => format!("static const {ty} default_{f}[] = {{{}}};\n", values.join(", ")),
        };
        format!(
            "{table}{get}op->n_{f} = a ? a->n : {n};\n\
             op->{f} = {file}_copy(a ? (const void *)a->{member} : {own}, op->n_{f} * sizeof *op->{f});\nif (!op->{f}) {fail}"
        )
    };
    match (a.kind, default) {
        (Kind::Int, d) => format!("{get}op->{f} = a ? a->i : {};", number(d, "0")),
        (Kind::Float, d) => format!("{get}op->{f} = a ? a->f : {};", number(d, "0.0")),
        (Kind::Bool, d) => {
            format!("{get}op->{f} = a ? a->i != 0 : {};", i32::from(d == Some(&Literal::Bool(true))))
        }
        (Kind::Str, d) => {
            let text = d.map(Literal::to_string).unwrap_or_default();
            format!(
                "{get}op->{f} = a ? {file}_copy(a->s.data, a->s.len) : {file}_copy(\"{text}\", {});\nif (!op->{f}) {fail}",
                text.len()
            )
        }
        (Kind::Ints, Some(Literal::Ints(v))) => list("ints", "int64_t", v.iter().map(i64::to_string).collect()),
        (Kind::Floats, Some(Literal::Floats(v))) => {
            list("floats", "double", v.iter().map(|x| format!("{x:?}")).collect())
        }
        (Kind::Ints, _) => list("ints", "int64_t", vec![]),
        (Kind::Floats, _) => list("floats", "double", vec![]),
        (Kind::Strs, d) => {
            let values = if let Some(Literal::Strs(v)) = d { v.clone() } else { vec![] };
            let mut quoted: Vec<String> = values.iter().map(|s| format!("\"{s}\"")).collect();
            quoted.push("NULL".into());
            format!(
                "static const char *const default_{f}[] = {{{}}};\n{get}size_t n_{f} = a ? a->n : {};\n\
                 op->{f} = calloc(n_{f} + 1, sizeof *op->{f});\nif (!op->{f}) {fail}\n\
                 for (; op->n_{f} < n_{f}; op->n_{f}++) {{\n    size_t i = op->n_{f};\n    \
                 op->{f}[i] = a ? {file}_copy(a->strs[i].data, a->strs[i].len) : {file}_copy(default_{f}[i], strlen(default_{f}[i]));\n    \
                 if (!op->{f}[i]) {fail}\n}}",
                quoted.join(", "),
                values.len()
            )
        }
    }
}

fn number(value: Option<&Literal>, otherwise: &str) -> String {
    value.map_or(otherwise.into(), Literal::to_string)
}

fn freed(a: &Attribute) -> Option<String> {
    let f = field(&a.name);
    match a.kind {
        Kind::Int | Kind::Float | Kind::Bool => None,
        Kind::Str | Kind::Ints | Kind::Floats => Some(format!("free(op->{f});")),
        Kind::Strs => {
            Some(format!("for (size_t i = 0; op->{f} && i < op->n_{f}; i++) free(op->{f}[i]);\nfree(op->{f});"))
        }
    }
}

fn infos(answers: &Answers) -> Vec<String> {
    if answers.attributes.is_empty() {
        return vec![];
    }
    let mut out = vec![];
    let mut rows = vec![];
    for a in &answers.attributes {
        let f = field(&a.name);
        let default = a.default.as_ref().map(|value| {
            out.extend(default_attr(a, value));
            format!("&otherwise_{f}")
        });
        let kind = match a.kind {
            Kind::Int => "INT",
            Kind::Float => "FLOAT",
            Kind::Bool => "BOOL",
            Kind::Str => "STR",
            Kind::Ints => "INTS",
            Kind::Floats => "FLOATS",
            Kind::Strs => "STRS",
        };
        let required = i32::from(default.is_none());
        rows.push(format!(
            "    {{\"{}\", CARAFE_ATTR_{kind}, {required}, {}, \"EDIT: what it means.\"}},",
            a.name,
            default.unwrap_or("NULL".into())
        ));
    }
    out.push("CarafeAttrInfo attrs[] = {".into());
    out.extend(rows);
    out.push("};".into());
    out
}

// The default of an attribute as the table wants it.
fn default_attr(a: &Attribute, value: &Literal) -> Vec<String> {
    let (f, name) = (field(&a.name), &a.name);
    let none = |kind: &str| format!("CarafeAttr otherwise_{f} = carafe_attr_none(\"{name}\", CARAFE_ATTR_{kind});");
    let list = |kind: &str, member: &str, ty: &str, values: Vec<String>| match values.is_empty() {
        true => vec![none(kind)],
        false => vec![
            format!("static const {ty} values_{f}[] = {{{}}};", values.join(", ")),
            none(kind),
            format!("otherwise_{f}.{member} = values_{f};"),
            format!("otherwise_{f}.n = {};", values.len()),
        ],
    };
    match value {
        Literal::Int(i) => vec![format!("CarafeAttr otherwise_{f} = carafe_attr_int(\"{name}\", {i});")],
        Literal::Float(x) => vec![format!("CarafeAttr otherwise_{f} = carafe_attr_float(\"{name}\", {x:?});")],
        Literal::Bool(b) => vec![none("BOOL"), format!("otherwise_{f}.i = {};", i32::from(*b))],
        Literal::Str(s) => vec![format!("CarafeAttr otherwise_{f} = carafe_attr_str(\"{name}\", \"{s}\");")],
        Literal::Ints(v) => list("INTS", "ints", "int64_t", v.iter().map(i64::to_string).collect()),
        Literal::Floats(v) => list("FLOATS", "floats", "double", v.iter().map(|x| format!("{x:?}")).collect()),
        Literal::Strs(v) => {
            let values = v.iter().map(|s| format!("{{\"{s}\", {}}}", s.len())).collect();
            list("STRS", "strs", "CarafeStr", values)
        }
    }
}
