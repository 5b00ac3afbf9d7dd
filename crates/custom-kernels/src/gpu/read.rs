//! Reads `SimpleGPU` elements. Unknown attributes and elements are left alone, as the format has it.

use super::work_size::WorkSizes;
use super::{Argument, ArrayType, Define, GpuFile, GpuLayer};
use crate::declared::Declaration;
use crate::expression::{Expression, shorten};
use crate::file::{KernelFile, Mode};
use crate::layout::Format;
use crate::xml::{Element, Reading};
use carafe_graph::{AttrMap, AttrValue, Error, Result};
use std::collections::{BTreeMap, HashMap};

/// More arguments than any kernel has.
const MOST_ARGUMENTS: usize = 1024;

/// Reads all kernels of a file. Every wrong one is reported, and then none is given.
pub fn read(file: &KernelFile, mode: Mode) -> Result<GpuFile> {
    let cx = Reading::new(file, mode)?;
    let layers = read_layers(&cx)?;
    Ok(GpuFile { layers, warnings: cx.into_warnings() })
}

fn read_layers(cx: &Reading<'_>) -> Result<Vec<GpuLayer>> {
    let document = cx.parse()?;
    let root = Element::root(&document, cx);
    if root.has_stray_text() {
        cx.warn(format!("{}: text between elements means nothing", cx.file.name));
    }
    let mut layers = vec![];
    let mut errors: Vec<Error> = vec![];
    for element in root.children() {
        match read_layer(element) {
            Ok(layer) => layers.push(layer),
            Err(e) => errors.push(e),
        }
    }
    crate::file::all_or_errors(layers, errors, &cx.file.name)
}

fn read_layer(element: Element<'_>) -> Result<GpuLayer> {
    if element.name() != "CustomLayer" {
        return Err(element.fail(format!("wrong node: expected <CustomLayer>, found <{}>", shorten(element.name()))));
    }
    let name = element.get("name").unwrap_or_default();
    if name.is_empty() {
        return Err(element.fail("missing layer name: attribute `name` is required"));
    }
    layer(element, name).map_err(|e| e.at(format!("layer `{}`", shorten(name))))
}

fn layer(element: Element<'_>, name: &str) -> Result<GpuLayer> {
    let kind = element.required("type")?;
    if kind != "SimpleGPU" {
        return Err(element.fail_at("type", &format!("expected `SimpleGPU`, found `{}`", shorten(kind))));
    }
    match element.number("version")? {
        Some(1) => {}
        Some(other) => return Err(element.fail_at("version", &format!("expected 1, found {other}"))),
        None => return Err(element.fail("attribute `version` is required and missing; it must be 1")),
    }
    if element.has_stray_text() {
        element.quirk(None, "text between elements means nothing")?;
    }
    let kernel = element.required_child("Kernel")?;
    if element.all("Kernel").count() > 1 {
        element.quirk(None, "there is one <Kernel> a layer; only the first is read")?;
    }
    let entry = kernel.get("entry").unwrap_or_default();
    if entry.is_empty() {
        return Err(kernel.fail("no kernel entry: attribute `entry` with the name of the kernel function is required"));
    }
    let sources = read_sources(kernel)?;
    let defines = kernel.all("Define").map(read_define).collect::<Result<Vec<_>>>()?;
    let arguments = read_arguments(element.required_child("Buffers")?)?;
    if element.all("CompilerOptions").count() > 1 {
        element.quirk(None, "there is one <CompilerOptions> a layer; only the first is read")?;
    }
    let options = element.child("CompilerOptions").and_then(|o| o.get("options")).unwrap_or_default();
    if options.contains('\0') {
        return Err(element.fail("the options of the compiler have a zero byte in them"));
    }
    let work_sizes = element.child("WorkSizes").map(WorkSizes::read).transpose()?;
    let declaration = Declaration::read(element, name, count_inputs(&arguments), defaults(&defines))?;
    Ok(GpuLayer {
        name: name.to_string(),
        location: element.location(),
        entry: entry.to_string(),
        sources,
        defines,
        arguments,
        options: options.to_string(),
        work_sizes,
        declaration,
    })
}

fn read_sources(kernel: Element<'_>) -> Result<Vec<crate::file::SourceText>> {
    let mut sources = vec![];
    for source in kernel.all("Source") {
        let name = source.required("filename")?;
        sources.push(kernel.cx.file.source(name).map_err(|e| source.wrap("filename", e))?);
    }
    match sources.is_empty() {
        true => Err(kernel.fail("no source: at least one <Source filename=\"...\"/> is required")),
        false => Ok(sources),
    }
}

fn read_define(element: Element<'_>) -> Result<Define> {
    let name = element.get("name").unwrap_or_default();
    if name.trim().is_empty() {
        return Err(element.fail("missing define name: attribute `name` is required"));
    }
    let values = ["name", "default"].map(|a| (a, element.get(a).unwrap_or_default()));
    for (attribute, value) in values {
        // A new line would end the definition and begin something else.
        if value.contains(['\n', '\r', '\0']) {
            return Err(element.fail_at(attribute, "expected one line"));
        }
    }
    let array = match element.get("type").unwrap_or_default() {
        "int[]" => Some(ArrayType::Int),
        "float[]" => Some(ArrayType::Float),
        _ => None,
    };
    let text = |a: &str| element.get(a).unwrap_or_default().to_string();
    Ok(Define { name: name.to_string(), param: text("param"), array, default: text("default") })
}

fn read_arguments(buffers: Element<'_>) -> Result<Vec<Argument>> {
    let mut found: BTreeMap<usize, Argument> = BTreeMap::new();
    let mut formats: HashMap<(bool, usize), Format> = HashMap::new();
    let mut ordinals: HashMap<usize, ()> = HashMap::new();
    for element in buffers.children().filter(|e| ["Tensor", "Data"].contains(&e.name())) {
        let index = element.index("arg-index")?;
        if index >= MOST_ARGUMENTS {
            return Err(
                element.fail_at("arg-index", &format!("expected an index below {MOST_ARGUMENTS}, found {index}"))
            );
        }
        let argument = match element.name() {
            "Data" => Argument::Data { name: element.required("name")?.to_string(), location: element.location() },
            _ => read_tensor(element, &mut formats, &mut ordinals)?,
        };
        if found.insert(index, argument).is_some() {
            return Err(element.fail_at("arg-index", &format!("argument {index} is given twice")));
        }
    }
    if let Some(gap) = (0..found.len()).find(|i| !found.contains_key(i)) {
        let last = found.keys().next_back().copied().unwrap_or_default();
        return Err(buffers.fail(format!("argument {gap} is missing: `arg-index` goes from 0 to {last} without a gap")));
    }
    let has_output = found.values().any(|a| matches!(a, Argument::Output { .. }));
    if !has_output {
        return Err(buffers.fail("no output: at least one <Tensor type=\"output\"> is required"));
    }
    Ok(found.into_values().collect())
}

fn read_tensor(
    element: Element<'_>,
    formats: &mut HashMap<(bool, usize), Format>,
    ordinals: &mut HashMap<usize, ()>,
) -> Result<Argument> {
    let port = element.index("port-index")?;
    let kind = element.required("type")?;
    let location = element.location();
    if kind == "internal" {
        if ordinals.insert(port, ()).is_some() {
            return Err(element.fail_at("port-index", &format!("there are two internal buffers {port}")));
        }
        let size = element.get("size").filter(|s| !s.trim().is_empty());
        let size = size.ok_or_else(|| element.fail("an internal buffer needs the attribute `size`"))?;
        let size = Expression::of_names(size).map_err(|e| element.wrap("size", e))?;
        return Ok(Argument::Internal { size, location });
    }
    let is_output = match kind {
        "input" => false,
        "output" => true,
        other => {
            let why = format!("expected a tensor type, `input`, `output` or `internal`, found `{}`", shorten(other));
            return Err(element.fail_at("type", &why));
        }
    };
    let format = Format::of_gpu(element.get("format").unwrap_or("BFYX")).map_err(|e| element.wrap("format", e))?;
    let first = *formats.entry((is_output, port)).or_insert(format);
    if first != format {
        let why = format!("{kind} {port} is asked for in {} before; it has one format, the first", first.name());
        element.quirk(Some("format"), &why)?;
    }
    Ok(match is_output {
        true => Argument::Output { port, format: first, location },
        false => Argument::Input { port, format: first, location },
    })
}

fn count_inputs(arguments: &[Argument]) -> usize {
    let ports =
        arguments.iter().filter_map(|a| if let Argument::Input { port, .. } = a { Some(port + 1) } else { None });
    ports.max().unwrap_or(0)
}

// What definitions say of attributes that a node leaves out.
fn defaults(defines: &[Define]) -> AttrMap {
    let given = defines.iter().filter(|d| !d.param.is_empty() && !d.default.is_empty());
    given.map(|d| (d.param.clone(), AttrValue::Text(d.default.clone()))).collect()
}

#[cfg(test)]
mod tests;
