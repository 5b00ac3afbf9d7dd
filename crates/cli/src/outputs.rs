//! From output tensors to files, tables and JSON.

use carafe::{CompiledModel, ElementType, Error, InferRequest, Port, Result, Tensor};
use serde_json::json;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// An output with its value.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub port: Port,
    pub tensor: Tensor,
}

pub(crate) fn collect(compiled: &Arc<dyn CompiledModel>, request: &dyn InferRequest) -> Result<Vec<Output>> {
    let one = |(i, port): (usize, &Port)| Ok(Output { port: port.clone(), tensor: request.output(i)?.clone() });
    compiled.outputs().iter().enumerate().map(one).collect()
}

/// Writes every tensor and `outputs.json`; gives the file names in output order. The list is written last, so that its
/// presence says that all of them are there.
pub(crate) fn write(dir: &Path, outputs: &[Output]) -> Result<Vec<String>> {
    let failed = |path: &Path, e: &std::io::Error| Error::io(format!("cannot write `{}`", path.display()), e);
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    let (mut files, mut rows) = (Vec::new(), Vec::new());
    let mut taken = HashSet::new();
    for o in outputs {
        let file = format!("{}.npy", unique(&file_safe(&o.port.name), &mut taken));
        let bytes = carafe_npy::write_npy(&o.tensor)
            .map_err(|e| Error::invalid(e.to_string()).at(format!("output `{}`", o.port.name)))?;
        let path = dir.join(&file);
        std::fs::write(&path, bytes).map_err(|e| failed(&path, &e))?;
        rows.push(result_json(o, Some(&file)));
        files.push(file);
    }
    let path = dir.join("outputs.json");
    std::fs::write(&path, format!("{:#}\n", json!({"outputs": rows}))).map_err(|e| failed(&path, &e))?;
    Ok(files)
}

fn unique(base: &str, taken: &mut HashSet<String>) -> String {
    // File systems may ignore case, so names must differ beyond it.
    let mut name = base.to_string();
    let mut n = 2;
    while !taken.insert(name.to_lowercase()) {
        name = format!("{base}_{n}");
        n += 1;
    }
    name
}

fn file_safe(name: &str) -> String {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(120).collect();
    match safe.trim_start_matches('.') {
        "" => "output".into(),
        s => s.into(),
    }
}

pub(crate) fn port_json(p: &Port) -> serde_json::Value {
    json!({"name": p.name, "names": p.names, "element_type": p.ty.name(), "shape": p.shape.to_string()})
}

pub(crate) fn result_json(o: &Output, file: Option<&str>) -> serde_json::Value {
    let mut row = json!({
        "name": o.port.name, "names": o.port.names,
        "element_type": o.tensor.element_type().name(), "shape": o.tensor.shape(),
    });
    if let Some(file) = file {
        row["file"] = json!(file);
    }
    row
}

/// One line: type, shape, range and the first values.
pub(crate) fn result_text(o: &Output) -> Result<String> {
    let t = &o.tensor;
    let mut out = format!("{}: {}{:?}", o.port.name, t.element_type(), t.shape());
    if t.element_type() == ElementType::String {
        let first: Vec<String> = t.strings()?.iter().take(8).map(|s| format!("{s:?}")).collect();
        let _ = writeln!(out, " {}", first.join(" "));
        return Ok(out);
    }
    let values = t.to_vec::<f64>()?;
    if !values.is_empty() {
        let (min, max) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
        let _ = write!(out, " min {min} max {max}");
    }
    let first: Vec<String> = values.iter().take(8).map(|x| x.to_string()).collect();
    let more = if values.len() > 8 { " ..." } else { "" };
    let _ = writeln!(out, "  {}{more}", first.join(" "));
    Ok(out)
}

// Best classes of each row of the last axis, best first; ties by lower class.
fn top(tensor: &Tensor, k: usize) -> Result<Vec<Vec<(usize, f64)>>> {
    let classes = tensor.shape().iter().rev().copied().find(|n| *n > 1).unwrap_or(1);
    let values = tensor.to_vec::<f64>()?;
    let mut rows = Vec::new();
    for row in values.chunks(classes.max(1)) {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        rows.push(order.into_iter().take(k).map(|i| (i, row[i])).collect());
    }
    Ok(rows)
}

fn label(labels: Option<&[String]>, class: usize) -> Option<&str> {
    labels?.get(class).map(String::as_str)
}

pub(crate) fn top_text(o: &Output, k: usize, labels: Option<&[String]>) -> Result<String> {
    let mut out = format!("{}: {}{:?}\n", o.port.name, o.tensor.element_type(), o.tensor.shape());
    let rows = top(&o.tensor, k)?;
    let many = rows.len() > 1;
    for (r, row) in rows.iter().enumerate() {
        if many {
            let _ = writeln!(out, "  row {r}");
        }
        for (class, value) in row {
            let _ = writeln!(out, "  {class:>6}  {value:<12.6}  {}", label(labels, *class).unwrap_or(""));
        }
    }
    Ok(out)
}

pub(crate) fn top_json(tensor: &Tensor, k: usize, labels: Option<&[String]>) -> Result<serde_json::Value> {
    let row = |row: Vec<(usize, f64)>| -> Vec<serde_json::Value> {
        row.into_iter().map(|(c, v)| json!({"class": c, "value": v, "label": label(labels, c)})).collect()
    };
    Ok(json!(top(tensor, k)?.into_iter().map(row).collect::<Vec<_>>()))
}
