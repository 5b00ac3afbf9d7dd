//! From output tensors to files, tables and JSON. A sequence or an optional is one output, whatever the model has as results.

use carafe::memory::ensure_memory;
use carafe::{
    CompiledModel, ElementType, Error, InferRequest, ItemType, Model, PartialShape, Port, Result, Tensor, files,
    short_number,
};
use carafe_npy::NpyError;
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// An output with its value.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub name: String,
    pub names: BTreeSet<String>,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Tensor(Tensor),
    /// The tensors of a sequence or an optional; none for an optional without content.
    List {
        ty: ItemType,
        items: Option<Vec<Tensor>>,
    },
}

/// The outputs of the model: the elements of a sequence are one of them, packed or not.
pub(crate) fn collect(compiled: &CompiledModel, model: &Model, request: &InferRequest) -> Result<Vec<Output>> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut open: Option<&str> = None;
    for (i, port) in compiled.outputs().iter().enumerate() {
        let tensor = request.output(i)?;
        let result = model.results().get(i).copied();
        let part = result.and_then(|r| model.part_of(r));
        if let (Some(_), true, Some(Output { value: Value::List { items: Some(items), .. }, .. })) =
            (part, part == open, outputs.last_mut())
        {
            items.push(tensor);
            continue;
        }
        open = part;
        let (name, names) = match part {
            Some(name) => (name.to_string(), BTreeSet::from([name.to_string()])),
            None => (port.name.clone(), port.names.clone()),
        };
        let value = match (part, result.and_then(|r| model.packed_type(r))) {
            (Some(_), _) => {
                let ty = ItemType::sequence(ItemType::Tensor(tensor.element_type(), PartialShape::dynamic()));
                Value::List { ty, items: Some(vec![tensor]) }
            }
            (None, Some(ty)) => {
                let items = ty.unpack(&tensor).map_err(|e| e.at(format!("output `{name}`")))?;
                Value::List { ty, items }
            }
            (None, None) => Value::Tensor(tensor),
        };
        outputs.push(Output { name, names, value });
    }
    Ok(outputs)
}

impl Output {
    // Every tensor with the name a reader would call it by.
    fn tensors(&self) -> Vec<(String, &Tensor)> {
        match &self.value {
            Value::Tensor(t) => vec![(self.name.clone(), t)],
            Value::List { items, .. } => {
                let items = items.iter().flatten().enumerate();
                items.map(|(i, t)| (format!("{}[{i}]", self.name), t)).collect()
            }
        }
    }

    // Ending of the file for this output.
    fn ending(&self) -> &'static str {
        if matches!(self.value, Value::Tensor(_)) { "npy" } else { "npz" }
    }

    fn write_file(&self, path: &Path) -> Result<()> {
        let bad = |e: NpyError| Error::invalid(e.to_string()).at(format!("output `{}`", self.name));
        let written = match &self.value {
            Value::Tensor(t) => {
                let parts = carafe_npy::npy_parts(t).map_err(bad)?;
                files::Beside::create(path).and_then(|mut beside| {
                    beside.file().write_all(&parts.header)?;
                    beside.file().write_all(parts.data.bytes())?;
                    beside.finish()
                })
            }
            Value::List { items, .. } => {
                let items = items.iter().flatten().enumerate();
                let arrays: Vec<(String, Tensor)> = items.map(|(i, t)| (format!("arr_{i}"), t.clone())).collect();
                files::write(path, &carafe_npy::write_npz(&arrays).map_err(bad)?)
            }
        };
        written.map_err(|e| Error::io(format!("cannot write `{}`", path.display()), &e))
    }

    // The line above the tensors of a list.
    fn heading(&self) -> String {
        match &self.value {
            Value::Tensor(_) => String::new(),
            Value::List { ty, items: None } => format!("{}: {ty} without content\n", self.name),
            Value::List { ty, items: Some(items) } => format!("{}: {ty} with {} elements\n", self.name, items.len()),
        }
    }
}

/// Writes a file for every output and `outputs.json`; gives the file names in output order. The list is written last, so
/// that its presence says that all of them are there.
pub(crate) fn write(dir: &Path, outputs: &[Output]) -> Result<Vec<String>> {
    let failed = |path: &Path, e: &std::io::Error| Error::io(format!("cannot write `{}`", path.display()), e);
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    let (mut files, mut rows) = (Vec::new(), Vec::new());
    let mut taken = HashSet::new();
    for o in outputs {
        let file = format!("{}.{}", unique(&file_safe(&o.name), &mut taken), o.ending());
        o.write_file(&dir.join(&file))?;
        rows.push(result_json(o, Some(&file)));
        files.push(file);
    }
    let path = dir.join("outputs.json");
    files::write(&path, format!("{:#}\n", json!({"outputs": rows})).as_bytes()).map_err(|e| failed(&path, &e))?;
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

/// `packed` is what the port carries when that is a sequence or an optional.
pub(crate) fn port_json(p: &Port, packed: Option<&ItemType>) -> serde_json::Value {
    let mut row = json!({"name": p.name, "names": p.names, "element_type": p.ty.name(), "shape": p.shape.to_string()});
    if let Some(ty) = packed {
        row["type"] = json!(ty.to_string());
    }
    row
}

pub(crate) fn result_json(o: &Output, file: Option<&str>) -> serde_json::Value {
    let described = |t: &Tensor| json!({"element_type": t.element_type().name(), "shape": t.shape()});
    let mut row = match &o.value {
        Value::Tensor(t) => described(t),
        Value::List { ty, items } => {
            let items = items.as_ref().map(|items| items.iter().map(described).collect::<Vec<_>>());
            json!({"type": ty.to_string(), "elements": items})
        }
    };
    row["name"] = json!(o.name);
    row["names"] = json!(o.names);
    if let Some(file) = file {
        row["file"] = json!(file);
    }
    row
}

/// One line for each tensor: type, shape, range and the first values.
pub(crate) fn result_text(o: &Output) -> Result<String> {
    let mut out = o.heading();
    for (name, t) in o.tensors() {
        tensor_text(&mut out, &name, t)?;
    }
    Ok(out)
}

fn tensor_text(out: &mut String, name: &str, t: &Tensor) -> Result<()> {
    let _ = write!(out, "{name}: {}{:?}", t.element_type(), t.shape());
    if t.element_type() == ElementType::String {
        let first: Vec<String> = t.strings()?.iter().take(8).map(|s| format!("{s:?}")).collect();
        let _ = writeln!(out, " {}", first.join(" "));
        return Ok(());
    }
    let (mut nan, mut min, mut max) = (0usize, f64::INFINITY, f64::NEG_INFINITY);
    t.for_each(|x: f64| {
        nan += usize::from(x.is_nan());
        (min, max) = (min.min(x), max.max(x));
    })?;
    if nan < t.len() {
        let _ = write!(out, " min {} max {}", shown(min, t), shown(max, t));
    }
    if nan > 0 {
        let _ = write!(out, " NaN {nan} of {}", t.len());
    }
    let first: Vec<String> = t.first::<f64>(8)?.iter().map(|x| shown(*x, t)).collect();
    let more = if t.len() > 8 { " ..." } else { "" };
    let _ = writeln!(out, "  {}{more}", first.join(" "));
    Ok(())
}

// Whole numbers keep all of their digits.
fn shown(x: f64, t: &Tensor) -> String {
    if t.element_type().is_float() { short_number(x) } else { x.to_string() }
}

// Best classes of each row of the last axis, best first; ties by lower class.
fn top(tensor: &Tensor, k: usize) -> Result<Vec<Vec<(usize, f64)>>> {
    let classes = tensor.shape().iter().rev().copied().find(|n| *n > 1).unwrap_or(1);
    let values = tensor.to_vec::<f64>()?;
    ensure_memory(values.len().saturating_mul(size_of::<(usize, f64)>()))?;
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
    let mut out = o.heading();
    for (name, t) in o.tensors() {
        let _ = writeln!(out, "{name}: {}{:?}", t.element_type(), t.shape());
        let rows = top(t, k)?;
        let many = rows.len() > 1;
        for (r, row) in rows.iter().enumerate() {
            if many {
                let _ = writeln!(out, "  row {r}");
            }
            for (class, value) in row {
                let _ =
                    writeln!(out, "  {class:>6}  {:<12}  {}", shown(*value, t), label(labels, *class).unwrap_or(""));
            }
        }
    }
    Ok(out)
}

/// The best classes of each row; for a sequence a list of these, one for each element.
pub(crate) fn top_json(o: &Output, k: usize, labels: Option<&[String]>) -> Result<serde_json::Value> {
    let row = |row: Vec<(usize, f64)>| -> Vec<serde_json::Value> {
        row.into_iter().map(|(c, v)| json!({"class": c, "value": v, "label": label(labels, c)})).collect()
    };
    let of =
        |t: &Tensor| -> Result<serde_json::Value> { Ok(json!(top(t, k)?.into_iter().map(row).collect::<Vec<_>>())) };
    match &o.value {
        Value::Tensor(t) => of(t),
        Value::List { .. } => {
            o.tensors().into_iter().map(|(_, t)| of(t)).collect::<Result<Vec<_>>>().map(|all| json!(all))
        }
    }
}
