//! `carafe operations`: which operations there are, which a format's rules translate, which a device takes. The pages under
//! `docs/reference` are what `--markdown` prints.

use super::{print, print_as_it_is, print_json, table};
use crate::operations_args::OperationsArgs;
use carafe::{AttrInfo, AttrKind, Core, Error, OpInfo, PortInfo, Result};
use carafe_conformance::Coverage;
use serde_json::{Value, json};
use std::fmt::Write;

pub(crate) fn run(core: &Core, args: &OperationsArgs) -> Result<()> {
    let (text, page, data) = match (&args.name, &args.format, &args.device) {
        (Some(name), _, _) => one(core, name)?,
        (_, Some(format), _) => of_format(core, format)?,
        (_, _, Some(device)) => of_device(core, device)?,
        _ => all(core),
    };
    match (args.json, args.markdown) {
        (true, _) => print_json(&data),
        (_, true) => print_as_it_is(&page),
        _ => print(&text),
    }
}

/// Text for people, the same as Markdown, and for programs.
type Answer = (String, String, Value);

fn all(core: &Core) -> Answer {
    let registry = core.registry();
    let infos: Vec<&OpInfo> = registry.all().into_iter().map(|f| f.info).collect();
    let rows: Vec<[String; 4]> =
        infos.iter().map(|i| [i.name.into(), versions(i), ports(i.inputs), attributes(i)]).collect();
    let heads = ["operation", "opsets", "inputs", "attributes"].map(String::from);
    let text = table(&[std::slice::from_ref(&heads), rows.as_slice()].concat());
    let names: std::collections::BTreeSet<&str> = infos.iter().map(|i| i.name).collect();
    let mut page = format!(
        "# Operations\n\n{} operations in {} versions, as `carafe operations --markdown` prints them; `carafe operations NAME` tells more \
         of one. `?` marks an input that may be left out, `...` any number of inputs, `*` an attribute that must be given. Those of opset \
         `carafe` are our own: rewrites make them, and files have them only where a model needs them.\n\n",
        names.len(),
        infos.len()
    );
    page += &markdown(&heads, &rows);
    (text, page, Value::Array(infos.iter().map(|i| described(i)).collect()))
}

fn one(core: &Core, name: &str) -> Result<Answer> {
    let registry = core.registry();
    let wanted = name.replace('_', "").to_ascii_lowercase();
    let infos: Vec<&OpInfo> = registry.all().into_iter().map(|f| f.info).collect();
    let is_it = |i: &&&OpInfo| [i.name, i.xml_name].iter().any(|n| n.to_ascii_lowercase() == wanted);
    let found: Vec<&OpInfo> = infos.iter().filter(is_it).copied().collect();
    if found.is_empty() {
        let near = registry.near(name).join(", ");
        return Err(Error::not_found(format!("there is no operation `{name}`; similar: {near}")));
    }
    let mut text = String::new();
    for (i, info) in found.iter().enumerate() {
        let _ = writeln!(text, "{}{}, {}", if i > 0 { "\n" } else { "" }, info.name, versions(info));
        let _ = writeln!(text, "  {}", info.doc.trim().replace('\n', "\n  "));
        for (what, list) in [("inputs", info.inputs), ("outputs", info.outputs)] {
            let _ = writeln!(text, "  {what}: {}", ports(list));
        }
        for a in info.attrs {
            let default = a.default.map_or("must be given".into(), |d| format!("default {}", default(d)));
            let _ = writeln!(text, "  {} ({}, {default}): {}", a.name, kind(a), a.doc.trim().replace('\n', " "));
        }
    }
    let data = Value::Array(found.iter().map(|i| described(i)).collect());
    Ok((text.clone(), format!("```text\n{text}```\n"), data))
}

fn of_format(core: &Core, name: &str) -> Result<Answer> {
    let formats = core.formats();
    let named = |f: &&std::sync::Arc<dyn carafe::Format>| {
        !f.framework().is_empty() && f.framework() == name.to_ascii_lowercase()
    };
    let Some(format) = formats.iter().find(named) else {
        let known: Vec<&str> = formats.iter().map(|f| f.framework()).filter(|f| !f.is_empty()).collect();
        return Err(Error::usage(format!("there is no format `{name}` with rules; there are: {}", known.join(", "))));
    };
    let operations = format.rules().operations();
    let rows: Vec<[String; 3]> = operations
        .iter()
        .map(|(domain, op, since)| {
            let since = since.iter().filter(|s| **s > 1).map(i64::to_string).collect::<Vec<_>>();
            [(*op).to_string(), (*domain).to_string(), since.join(", ")]
        })
        .collect();
    let heads = ["type", "domain", "changed in version"].map(String::from);
    let text = table(&[std::slice::from_ref(&heads), rows.as_slice()].concat());
    let mut page = format!(
        "# What is read of {}\n\n{} types of operations have a rule, as `carafe operations --format {} --markdown` prints them. Any other is \
         yours to add: an [operation](../custom-ops.md) of the same name is enough.\n\n",
        format.name(),
        rows.len(),
        format.framework()
    );
    // Columns that say nothing are left out.
    let used = |column: usize| rows.iter().any(|r| !r[column].is_empty());
    page += &match (used(1), used(2)) {
        (false, false) => {
            let names: Vec<String> = rows.iter().map(|r| format!("`{}`", r[0])).collect();
            format!("{}\n", names.join(", "))
        }
        (false, true) => markdown(
            &[heads[0].clone(), heads[2].clone()],
            &rows.iter().map(|r| [r[0].clone(), r[2].clone()]).collect::<Vec<_>>(),
        ),
        _ => markdown(&heads, &rows),
    };
    let data =
        operations.iter().map(|(domain, op, since)| json!({"type": op, "domain": domain, "since": since})).collect();
    Ok((text, page, data))
}

fn of_device(core: &Core, device: &str) -> Result<Answer> {
    let list = carafe_conformance::coverage(core, device)?;
    let share = |c: &Coverage| match (c.taken, c.forms) {
        (0, _) => "no".to_string(),
        (taken, forms) if taken == forms => "yes".to_string(),
        (taken, forms) => format!("{taken} of {forms} forms"),
    };
    let reason = |c: &Coverage| c.reason.clone().unwrap_or_default();
    let rows: Vec<[String; 4]> = list.iter().map(|c| [c.op.clone(), c.opset.clone(), share(c), reason(c)]).collect();
    let heads = ["operation", "opset", "runs", "why not the others"].map(String::from);
    let text = table(&[std::slice::from_ref(&heads), rows.as_slice()].concat());
    let whole = list.iter().filter(|c| c.taken == c.forms).count();
    let some = list.iter().filter(|c| c.taken > 0 && c.taken < c.forms).count();
    let mut page = format!(
        "# What {device} runs\n\nOf {} operations {device} takes {whole} in every form that the operation cases have, {some} in some, as \
         `carafe operations --device {device} --markdown` prints them.\n\n",
        list.len()
    );
    if whole < list.len() {
        let _ = writeln!(page, "`HETERO:{device},CPU` runs the rest on CPU.\n");
    }
    page += &markdown(&heads, &rows);
    let row = |c: &Coverage| json!({"operation": c.op, "opset": c.opset, "forms": c.forms, "taken": c.taken, "reason": c.reason});
    Ok((text, page, list.iter().map(row).collect()))
}

fn versions(info: &OpInfo) -> String {
    match (info.since, info.until) {
        (0, _) => info.opset.to_string(),
        (since, until) if since == until => format!("opset{since}"),
        (since, until) => format!("opset{since} to {until}"),
    }
}

fn ports(list: &[PortInfo]) -> String {
    let mark = |p: &PortInfo| {
        format!("{}{}{}", p.name, if p.optional { "?" } else { "" }, if p.variadic { "..." } else { "" })
    };
    list.iter().map(mark).collect::<Vec<_>>().join(", ")
}

fn attributes(info: &OpInfo) -> String {
    let public = info.attrs.iter().filter(|a| !a.internal);
    public.map(|a| format!("{}{}", a.name, if a.default.is_none() { "*" } else { "" })).collect::<Vec<_>>().join(", ")
}

fn kind(attr: &AttrInfo) -> String {
    match attr.kind {
        AttrKind::Enum(words) => words.join(" | "),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

// A default as a file would have it: declarations hold the Rust expression.
fn default(expression: &str) -> String {
    let plain = expression.replace(' ', "");
    let word = plain.rsplit("::").next().unwrap_or_default();
    match plain.as_str() {
        "Vec::new()" | "None" | "String::new()" | "vec![]" => "none".into(),
        list if list.starts_with("vec![") => list["vec![".len()..].trim_end_matches(']').replace(".to_string()", ""),
        _ if plain.contains("::") && !word.ends_with(')') => word.to_ascii_lowercase(),
        _ => plain.trim_end_matches(".into()").trim_matches('"').to_string(),
    }
}

fn described(info: &OpInfo) -> Value {
    let ports = |list: &[PortInfo]| -> Value {
        list.iter().map(|p| json!({"name": p.name, "optional": p.optional, "variadic": p.variadic})).collect()
    };
    let attrs: Value = info
        .attrs
        .iter()
        .filter(|a| !a.internal)
        .map(|a| json!({"name": a.name, "kind": kind(a), "default": a.default.map(default), "doc": a.doc.trim()}))
        .collect();
    json!({"name": info.name, "opset": info.opset, "since": info.since, "until": info.until, "doc": info.doc.trim(),
           "inputs": ports(info.inputs), "outputs": ports(info.outputs), "attributes": attrs})
}

fn markdown<const N: usize>(heads: &[String; N], rows: &[[String; N]]) -> String {
    let line = |cells: &[String; N]| {
        format!("| {} |\n", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let mut out = line(heads);
    out += &format!("|{}\n", "---|".repeat(N));
    rows.iter().for_each(|r| out += &line(r));
    out
}
