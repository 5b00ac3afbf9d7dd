//! Reads `MVCL` elements in both schemas. In the nested one (2020.4 to 2022.3) `Parameters` and `WorkSizes` stand in each `Kernel`, and
//! so do `stage` and `max-shaves`; in the flat one (before, and still in the documentation) they belong to the `CustomLayer`, and a
//! layer of several stages is several elements with `stage="0"`, `stage="1"` and so on.

use super::{Binding, BindingValue, Condition, DimSource, SHAVES, VpuFile, VpuKernel, VpuLayer};
use crate::declared::Declaration;
use crate::expression::{Expression, shorten};
use crate::file::{KernelFile, Mode};
use crate::layout::Format;
use crate::xml::{Element, Reading};
use carafe_graph::{AttrMap, Error, Result};

/// More parameters or stages than any layer has.
const MOST: usize = 1024;

/// Reads all layers of a file. Every wrong one is reported, and then none is given.
pub fn read(file: &KernelFile, mode: Mode) -> Result<VpuFile> {
    let cx = Reading::new(file, mode)?;
    let layers = read_layers(&cx)?;
    Ok(VpuFile { layers, warnings: cx.into_warnings() })
}

fn read_layers(cx: &Reading<'_>) -> Result<Vec<VpuLayer>> {
    let document = cx.parse()?;
    let mut layers: Vec<VpuLayer> = vec![];
    let mut errors: Vec<Error> = vec![];
    for element in Element::root(&document, cx).children() {
        let added = read_layer(element).and_then(|(layer, stage)| add_layer(&mut layers, layer, stage, element));
        errors.extend(added.err());
    }
    crate::file::all_or_errors(layers, errors, &cx.file.name)
}

// A later stage of the flat schema belongs to the layer of its name that was read last.
fn add_layer(layers: &mut Vec<VpuLayer>, layer: VpuLayer, stage: Option<usize>, element: Element<'_>) -> Result<()> {
    let Some(stage) = stage.filter(|s| *s > 0) else {
        layers.push(layer);
        return Ok(());
    };
    let first = layers.iter_mut().rev().find(|l| l.name.eq_ignore_ascii_case(&layer.name));
    let first = first.filter(|l| l.stages.len() == stage).ok_or_else(|| {
        let why = format!("stage {stage} of `{}` needs stage {} right before it", shorten(&layer.name), stage - 1);
        element.fail_at("stage", &why)
    })?;
    first.stages.extend(layer.stages);
    first.conditions.extend(layer.conditions);
    if first.declaration.is_none() {
        first.declaration = layer.declaration;
    }
    Ok(())
}

fn read_layer(element: Element<'_>) -> Result<(VpuLayer, Option<usize>)> {
    if !element.name().eq_ignore_ascii_case("CustomLayer") {
        return Err(element.fail(format!("wrong node: expected <CustomLayer>, found <{}>", shorten(element.name()))));
    }
    let name = element.required("name")?;
    layer(element, name).map_err(|e| e.at(format!("layer `{}`", shorten(name))))
}

fn layer(element: Element<'_>, name: &str) -> Result<(VpuLayer, Option<usize>)> {
    refuse_empty_attributes(element)?;
    let kind = element.required("type")?;
    if !kind.eq_ignore_ascii_case("MVCL") {
        return Err(element.fail_at("type", &format!("expected `MVCL`, found `{}`", shorten(kind))));
    }
    match element.number("version")? {
        Some(1) => {}
        Some(other) => return Err(element.fail_at("version", &format!("expected 1, found {other}"))),
        None => return Err(element.fail("attribute `version` is required and missing; it must be 1")),
    }
    let kernels: Vec<Element<'_>> = element.all("Kernel").collect();
    if kernels.is_empty() {
        return Err(element.fail("the element <Kernel> is missing"));
    }
    if kernels.len() > MOST {
        return Err(element.fail(format!("there are more than {MOST} stages")));
    }
    let nested = kernels.iter().any(|k| k.child("Parameters").is_some());
    let (stages, stage) = if nested { (nested_stages(element, &kernels)?, None) } else { flat(element, &kernels)? };
    let conditions = element.child("Where").into_iter().flat_map(Element::attributes);
    let conditions = conditions.map(|(n, v)| Condition { name: n.into(), restriction: v.into() }).collect();
    let port = |b: &Binding| if let BindingValue::Input { port, .. } = b.value { Some(port + 1) } else { None };
    let inputs = stages.iter().flat_map(|s| &s.bindings).filter_map(port).max().unwrap_or(0);
    let declaration = Declaration::read(element, name, inputs, AttrMap::new())?;
    Ok((VpuLayer { name: name.to_string(), location: element.location(), conditions, stages, declaration }, stage))
}

fn refuse_empty_attributes(layer: Element<'_>) -> Result<()> {
    let below = layer.children().flat_map(|c| std::iter::once(c).chain(c.children()));
    let below =
        below.flat_map(|c| std::iter::once(c).chain(c.all("Tensor")).chain(c.all("Data")).chain(c.all("Scalar")));
    for element in std::iter::once(layer).chain(below) {
        // An operation without axes has an empty shape.
        let is_empty =
            |(name, value): &(&str, &str)| value.trim().is_empty() && (element.name(), *name) != ("Output", "shape");
        if let Some((name, _)) = element.attributes().find(is_empty) {
            return Err(element.fail_at(name, "expected a value, found an empty one"));
        }
    }
    Ok(())
}

fn nested_stages(layer: Element<'_>, kernels: &[Element<'_>]) -> Result<Vec<VpuKernel>> {
    let mut stages: Vec<Option<VpuKernel>> = kernels.iter().map(|_| None).collect();
    for &kernel in kernels {
        let stage = match kernels.len() {
            1 => 0,
            _ if kernel.get("stage").is_none() => {
                return Err(kernel.fail("attribute `stage` is required where a layer has several kernels"));
            }
            _ => kernel.index("stage")?,
        };
        let last = kernels.len() - 1;
        let slot = stages.get_mut(stage);
        let slot = slot.ok_or_else(|| kernel.fail_at("stage", &format!("expected 0 to {last}, found {stage}")))?;
        if slot.is_some() {
            return Err(kernel.fail_at("stage", &format!("stage {stage} is there twice")));
        }
        let parameters = kernel.required_child("Parameters")?;
        let sizes = kernel.required_child("WorkSizes")?;
        *slot = Some(read_kernel(kernel, parameters, sizes, max_shaves(kernel)?, false)?);
    }
    let missing = || layer.fail("a stage is missing");
    stages.into_iter().map(|s| s.ok_or_else(missing)).collect()
}

fn flat(layer: Element<'_>, kernels: &[Element<'_>]) -> Result<(Vec<VpuKernel>, Option<usize>)> {
    let [kernel] = kernels else {
        return Err(
            layer.fail("several kernels need <Parameters> and <WorkSizes> of their own inside of each <Kernel>")
        );
    };
    if layer.cx.mode == Mode::Strict {
        return Err(kernel.fail("the element <Parameters> is missing; in the flat schema it stands beside <Kernel>"));
    }
    let stage = if layer.get("stage").is_some() { Some(layer.index("stage")?) } else { None };
    let parameters = layer.required_child("Parameters")?;
    let sizes = layer.required_child("WorkSizes")?;
    let kernel = read_kernel(*kernel, parameters, sizes, max_shaves(layer)?, true)?;
    Ok((vec![kernel], stage))
}

fn max_shaves(element: Element<'_>) -> Result<usize> {
    if element.get("max-shaves").is_none() {
        return Ok(0);
    }
    match element.index("max-shaves")? {
        n if n <= SHAVES => Ok(n),
        n => Err(element.fail_at("max-shaves", &format!("the chip has {SHAVES} cores, found {n}"))),
    }
}

fn read_kernel(
    kernel: Element<'_>,
    parameters: Element<'_>,
    sizes: Element<'_>,
    max_shaves: usize,
    is_flat: bool,
) -> Result<VpuKernel> {
    let entry = kernel.required("entry")?.to_string();
    let mut sources = vec![];
    for source in kernel.all("Source") {
        let name = source.required("filename")?;
        sources.push(kernel.cx.file.source(name).map_err(|e| source.wrap("filename", e))?);
    }
    if sources.is_empty() {
        return Err(kernel.fail("no source: at least one <Source filename=\"...\"/> is required"));
    }
    let mut bindings: Vec<Binding> = vec![];
    for child in parameters.children() {
        let binding = read_binding(child, is_flat)?;
        if bindings.iter().any(|b| b.argument == binding.argument) {
            return Err(child.fail_at("arg-name", &format!("argument `{}` is bound twice", shorten(&binding.argument))));
        }
        if bindings.len() >= MOST {
            return Err(parameters.fail(format!("there are more than {MOST} parameters")));
        }
        bindings.push(binding);
    }
    let dim = read_dim(sizes)?;
    let (global, local) = (read_rules(sizes, "global")?, read_rules(sizes, "local")?);
    if local.len() > global.len() {
        let why = format!("expected at most as many sizes as in `global` ({}), found {}", global.len(), local.len());
        return Err(sizes.fail_at("local", &why));
    }
    Ok(VpuKernel { entry, max_shaves, sources, bindings, dim, global, local, location: kernel.location() })
}

fn read_rules(element: Element<'_>, attribute: &str) -> Result<Vec<Expression>> {
    if attribute == "local" && element.get(attribute).is_none() && element.cx.mode == Mode::Compatible {
        element.quirk(None, "attribute `local` is required; a local size of 1 is taken")?;
        return Ok(vec![]);
    }
    let text = element.required(attribute)?;
    let rules = text.split(',').map(|rule| {
        let invalid = |e: Error| Error::invalid(format!("invalid WorkSize: `{}`: {e}", shorten(rule)));
        Expression::of_functions(rule).map_err(|e| element.wrap(attribute, invalid(e)))
    });
    let rules = rules.collect::<Result<Vec<_>>>()?;
    match rules.len() > 3 {
        true => Err(element.fail_at(attribute, &format!("expected at most 3 sizes, found {}", rules.len()))),
        false => Ok(rules),
    }
}

fn read_dim(element: Element<'_>) -> Result<DimSource> {
    let text = element.required("dim")?.trim();
    let invalid = || {
        element
            .fail_at("dim", &format!("invalid dim source: expected `input,N` or `output,N`, found `{}`", shorten(text)))
    };
    let (word, index) = match text.split_once([',', ' ']) {
        Some((word, index)) => (word.trim(), index.trim().parse::<u16>().map_err(|_| invalid())?.into()),
        None => {
            element.quirk(Some("dim"), "expected an index, as in `input,0`")?;
            (text, 0)
        }
    };
    match word.to_ascii_lowercase().as_str() {
        "input" => Ok(DimSource::Input(index)),
        "output" => Ok(DimSource::Output(index)),
        _ => Err(invalid()),
    }
}

fn read_binding(element: Element<'_>, is_flat: bool) -> Result<Binding> {
    let argument = element.required("arg-name")?.to_string();
    let value = match element.name() {
        "Tensor" => read_tensor(element)?,
        "Data" => read_data(element)?,
        "Scalar" => read_scalar(element, is_flat)?,
        other => {
            let why = format!("expected <Tensor>, <Data> or <Scalar> in <Parameters>, found <{}>", shorten(other));
            return Err(element.fail(why));
        }
    };
    Ok(Binding { argument, value, location: element.location() })
}

fn read_tensor(element: Element<'_>) -> Result<BindingValue> {
    let kind = element.required("type")?;
    let port = element.index("port-index")?;
    let format = || Format::of_vpu(element.get("format").unwrap_or("BFYX")).map_err(|e| element.wrap("format", e));
    Ok(match kind.to_ascii_lowercase().as_str() {
        "input" => BindingValue::Input { port, format: format()? },
        "output" => BindingValue::Output { port, format: format()? },
        "data" => BindingValue::Data { source: port.to_string() },
        buffer @ ("input_buffer" | "output_buffer") => {
            let is_output = buffer == "output_buffer";
            let size = match element.get("size") {
                None if is_output => return Err(element.fail("attribute `size` is required and missing")),
                None => None,
                Some(_) => Some((read_size(element)?, read_dim(element)?)),
            };
            BindingValue::Buffer { id: port, size, is_output }
        }
        other => {
            let why =
                format!("expected input, output, input_buffer, output_buffer or data, found `{}`", shorten(other));
            return Err(element.fail_at("type", &why));
        }
    })
}

// In bytes; what stands behind a comma is ignored.
fn read_size(element: Element<'_>) -> Result<Expression> {
    let text = element.required("size")?;
    Expression::of_functions(text.split(',').next().unwrap_or_default()).map_err(|e| element.wrap("size", e))
}

fn read_data(element: Element<'_>) -> Result<BindingValue> {
    let kind = element.required("type")?.to_ascii_lowercase();
    match (element.get("source"), element.get("dim")) {
        (Some(_), Some(_)) => return Err(element.fail("`source` and `dim` exclude each other")),
        (None, None) => return Err(element.fail("one of `source` and `dim` is required")),
        _ => {}
    }
    match (kind.as_str(), element.get("source")) {
        ("data", Some(source)) => Ok(BindingValue::Data { source: source.to_string() }),
        ("local_data", None) => Ok(BindingValue::LocalData { size: read_size(element)?, dim: read_dim(element)? }),
        ("data", None) => Err(element.fail("data needs `source`; memory on the chip is `local_data`")),
        ("local_data", Some(_)) => Err(element.fail("`local_data` needs `dim` and `size`, not `source`")),
        (other, _) => Err(element.fail_at("type", &format!("expected data or local_data, found `{}`", shorten(other)))),
    }
}

fn read_scalar(element: Element<'_>, is_flat: bool) -> Result<BindingValue> {
    let kind = element.required("type")?;
    let is_float = match kind.to_ascii_lowercase().as_str() {
        "int" => false,
        "float" => true,
        _ => return Err(element.fail_at("type", &format!("expected int or float, found `{}`", shorten(kind)))),
    };
    let port = match element.number("port-index")? {
        // In the flat schema 0 is what is meant when nothing is said.
        Some(0) if is_flat => None,
        Some(n) if n < 0 => None,
        Some(n) => Some(usize::try_from(n).unwrap_or_default()),
        None => None,
    };
    Ok(BindingValue::Scalar { is_float, port, source: element.required("source")?.trim().to_string() })
}

#[cfg(test)]
mod tests;
