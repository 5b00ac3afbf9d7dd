//! A layer for one node with exact shapes: sizes, numbers and arguments in the order of each kernel's parameters.

use super::{Binding, BindingValue, DimSource, ON_CHIP_BYTES, VpuKernel, VpuLayer, dma};
use crate::attributes::{number, parameter_text, to_number};
use crate::declared::letter;
use crate::expression::{Expression, Number, shorten};
use crate::layout::Format;
use crate::node::NodeView;
use crate::signature::{Parameter, Space, parameters};
use carafe_graph::{Error, Result};
use std::collections::BTreeMap;

/// What a device needs to run a layer for a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Kernels in order.
    pub stages: Vec<BoundStage>,
    /// Bytes of the buffers between them, by number.
    pub buffers: BTreeMap<usize, usize>,
}

/// One kernel of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundStage {
    /// All of the source as it is, with a line that names each file.
    pub source: String,
    /// Name of the kernel function.
    pub entry: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// An argument for each.
    pub arguments: Vec<StageArgument>,
    /// Global sizes.
    pub global: Vec<usize>,
    /// As many local ones.
    pub local: Vec<usize>,
    /// Most cores to use; 0 for all.
    pub max_shaves: usize,
}

/// One argument of a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StageArgument {
    /// An input of the node.
    Input {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// An output of the node.
    Output {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// Memory between stages.
    Buffer {
        /// Which.
        id: usize,
    },
    /// Memory on the chip.
    Local {
        /// So much.
        bytes: usize,
    },
    /// A number.
    Int(i32),
    /// A number.
    Float(f32),
}

impl VpuLayer {
    /// Whether the layer is for this node: all conditions hold, and every variable of its sizes is known.
    pub fn suits(&self, node: &NodeView) -> Result<bool> {
        if !self.conditions.iter().all(|c| c.holds(&node.attrs)) {
            return Ok(false);
        }
        let known = |name: &String| letter(name).is_some() || number(&node.attrs, name).is_some();
        let rules = self.stages.iter().flat_map(|s| s.global.iter().chain(&s.local));
        if !rules.flat_map(Expression::names).all(known) {
            return Ok(false);
        }
        for binding in self.stages.iter().flat_map(|s| &s.bindings) {
            check_port(binding, node).map_err(|e| self.located(e))?;
        }
        Ok(true)
    }

    /// Whether all its inputs are read as models have them.
    pub fn reads_plainly(&self) -> bool {
        let plain = |b: &Binding| !matches!(b.value, BindingValue::Input { format, .. } if !format.is_plain());
        self.stages.iter().flat_map(|s| &s.bindings).all(plain)
    }

    /// Binds the layer to a node. What is wrong names the layer and its place in the file.
    pub fn bind(&self, node: &NodeView) -> Result<Bound> {
        let bind = || {
            let buffers = self.buffers(node)?;
            let stages = self.stages.iter().map(|s| bind_stage(s, node, &buffers)).collect::<Result<Vec<_>>>()?;
            self.check_outputs(node)?;
            Ok(Bound { stages, buffers })
        };
        bind().map_err(|e| self.located(e))
    }

    fn located(&self, e: Error) -> Error {
        e.at(format!("custom layer `{}` ({})", self.name, self.location))
    }

    fn buffers(&self, node: &NodeView) -> Result<BTreeMap<usize, usize>> {
        let mut buffers: BTreeMap<usize, usize> = BTreeMap::new();
        for binding in self.stages.iter().flat_map(|s| &s.bindings) {
            let BindingValue::Buffer { id, size: Some((size, dim)), .. } = &binding.value else { continue };
            let bytes = bytes(size, *dim, node).map_err(|e| at(e, binding))?;
            let old = buffers.entry(*id).or_default();
            *old = bytes.max(*old);
        }
        let mut filled: Vec<usize> = vec![];
        for stage in &self.stages {
            for binding in &stage.bindings {
                let BindingValue::Buffer { id, is_output, .. } = &binding.value else { continue };
                if *is_output {
                    filled.push(*id);
                } else if !filled.contains(id) {
                    return Err(at(Error::invalid(format!("no earlier stage writes the buffer {id}")), binding));
                }
            }
        }
        Ok(buffers)
    }

    fn check_outputs(&self, node: &NodeView) -> Result<()> {
        let writes = |i: usize| {
            let mut all = self.stages.iter().flat_map(|s| &s.bindings);
            all.any(|b| matches!(b.value, BindingValue::Output { port, .. } if port == i))
        };
        match (0..node.outputs.len()).find(|i| !writes(*i)) {
            None => Ok(()),
            Some(missing) => Err(Error::invalid(format!(
                "the operation has {} outputs, and no <Tensor type=\"output\"> is output {missing}",
                node.outputs.len()
            ))),
        }
    }
}

fn at(e: Error, binding: &Binding) -> Error {
    e.at(format!("argument `{}`", binding.argument)).at(binding.location.to_string())
}

fn check_port(binding: &Binding, node: &NodeView) -> Result<()> {
    let (port, n, what) = match binding.value {
        BindingValue::Input { port, .. } => (port, node.inputs.len(), "input"),
        BindingValue::Output { port, .. } => (port, node.outputs.len(), "output"),
        _ => return Ok(()),
    };
    match port < n {
        true => Ok(()),
        false => {
            let why = format!("`port-index` {port} is none of the {what}s of the operation; it has {n}");
            Err(at(Error::invalid(why), binding))
        }
    }
}

fn bind_stage(kernel: &VpuKernel, node: &NodeView, buffers: &BTreeMap<usize, usize>) -> Result<BoundStage> {
    let located = |e: Error| e.at(format!("kernel `{}` ({})", kernel.entry, kernel.location));
    let mut source = String::new();
    kernel.sources.iter().for_each(|s| crate::gpu::add_source(&mut source, s));
    let found = parameters(&source, &kernel.entry).map_err(located)?;
    let parameters = found.ok_or_else(|| located(Error::not_found("the sources have no kernel of this name")))?;
    for b in &kernel.bindings {
        if !parameters.iter().any(|p| p.name == b.argument) {
            let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
            let why = format!("the kernel has no such parameter; it has {}", names.join(", "));
            return Err(located(at(Error::invalid(why), b)));
        }
    }
    let mut arguments = Vec::with_capacity(parameters.len());
    for parameter in &parameters {
        let binding = kernel.bindings.iter().find(|b| b.argument == parameter.name).ok_or_else(|| {
            located(Error::invalid(format!("nothing in <Parameters> binds its parameter `{}`", parameter.name)))
        })?;
        check_port(binding, node).map_err(located)?;
        let argument = argument(binding, node, buffers).and_then(|a| check_space(a, parameter));
        arguments.push(argument.map_err(|e| located(at(e, binding)))?);
    }
    let local_bytes = arguments.iter().map(|a| if let StageArgument::Local { bytes } = a { *bytes } else { 0 });
    let local_bytes = local_bytes.fold(0, usize::saturating_add);
    let halves = if dma::has_companions(&source, &kernel.entry) { 2 } else { 1 };
    if local_bytes > ON_CHIP_BYTES / halves {
        let why = if halves == 2 { ", half of it because copies run beside the kernel" } else { "" };
        return Err(located(Error::invalid(format!(
            "local data of {local_bytes} bytes does not fit on the chip, where a work group has {} bytes{why}",
            ON_CHIP_BYTES / halves
        ))));
    }
    let sizes = |rules: &[Expression], which: &str| -> Result<Vec<usize>> {
        let one = |rule: &Expression| {
            let value = value(rule, kernel.dim, node)?;
            let why = || Error::invalid(format!("{which} size `{}` is {value}, expected at least 1", rule.text()));
            usize::try_from(value).ok().filter(|n| *n > 0).ok_or_else(why)
        };
        rules.iter().map(one).collect()
    };
    let global = sizes(&kernel.global, "global").map_err(located)?;
    let mut local = sizes(&kernel.local, "local").map_err(located)?;
    local.resize(global.len(), 1);
    if (0..global.len()).any(|i| !global[i].is_multiple_of(local[i])) {
        return Err(located(Error::invalid(format!(
            "global size {global:?} is not a multiple of local size {local:?}"
        ))));
    }
    let (entry, max_shaves) = (kernel.entry.clone(), kernel.max_shaves);
    Ok(BoundStage { source, entry, parameters, arguments, global, local, max_shaves })
}

fn check_space(argument: StageArgument, parameter: &Parameter) -> Result<StageArgument> {
    let (wanted, what) = match argument {
        StageArgument::Local { .. } => (Space::Local, "local data"),
        StageArgument::Int(_) | StageArgument::Float(_) => (Space::Private, "a number"),
        _ => (Space::Global, "a tensor or buffer"),
    };
    match parameter.space == wanted {
        true => Ok(argument),
        false => Err(Error::invalid(format!(
            "it is {what}, and the parameter of the kernel is {}",
            match parameter.space {
                Space::Global => "a __global pointer",
                Space::Local => "a __local pointer",
                Space::Private => "a value",
            }
        ))),
    }
}

fn argument(binding: &Binding, node: &NodeView, buffers: &BTreeMap<usize, usize>) -> Result<StageArgument> {
    Ok(match &binding.value {
        BindingValue::Input { port, format } => StageArgument::Input { port: *port, format: *format },
        BindingValue::Output { port, format } => StageArgument::Output { port: *port, format: *format },
        BindingValue::Buffer { id, .. } => match buffers.contains_key(id) {
            true => StageArgument::Buffer { id: *id },
            false => return Err(Error::invalid(format!("nothing says the size of buffer {id}"))),
        },
        BindingValue::Data { source } => {
            let port = node.data_port(source).ok_or_else(|| {
                let names = node.data_names();
                Error::invalid(format!("the operation has no constant `{source}`; it has the inputs {names}"))
            })?;
            StageArgument::Input { port, format: Format::Any }
        }
        BindingValue::LocalData { size, dim } => StageArgument::Local { bytes: bytes(size, *dim, node)? },
        BindingValue::Scalar { is_float, port, source } => scalar(*is_float, *port, source, node)?,
    })
}

fn bytes(size: &Expression, dim: DimSource, node: &NodeView) -> Result<usize> {
    let value = value(size, dim, node)?;
    let why = || Error::invalid(format!("the size `{}` is {value} bytes, expected at least 1", size.text()));
    usize::try_from(value).ok().filter(|n| *n > 0).ok_or_else(why)
}

fn value(rule: &Expression, dim: DimSource, node: &NodeView) -> Result<i64> {
    let shape = shape(dim, node)?;
    let dimension = |axis: usize| from_end(shape, axis).and_then(|n| i64::try_from(n).ok()).map(Number::Int);
    rule.value(|name| number(&node.attrs, name).or_else(|| dimension(letter(name)?)))
}

fn shape(dim: DimSource, node: &NodeView) -> Result<&[usize]> {
    let (ports, index, what) = match dim {
        DimSource::Input(i) => (&node.inputs, i, "input"),
        DimSource::Output(i) => (&node.outputs, i, "output"),
    };
    let missing = || Error::invalid(format!("`dim` is {what} {index}, the operation has {} {what}s", ports.len()));
    ports.get(index).map(|p| p.shape.as_slice()).ok_or_else(missing)
}

// B, F, Y, X with X as the last axis; what is missing is 1.
fn from_end(shape: &[usize], axis: usize) -> Option<usize> {
    match shape.len().checked_sub(4 - axis) {
        Some(own) => shape.get(own).copied(),
        None => Some(1),
    }
}

fn scalar(is_float: bool, port: Option<usize>, source: &str, node: &NodeView) -> Result<StageArgument> {
    let text = match node.attrs.get(source).and_then(parameter_text) {
        Some(text) => match port {
            None | Some(0) if !text.contains(',') => text,
            // A list without an index is a mistake, but for the first of the flat schema.
            index => {
                let index = index.unwrap_or(0);
                let item = text.split(',').nth(index).map(str::to_string);
                item.ok_or_else(|| {
                    Error::invalid(format!("attribute `{source}` is `{}`, which has no item {index}", shorten(&text)))
                })?
            }
        },
        None => match source.split_once('.').filter(|_| to_number(source).is_none()) {
            Some((tensor, name)) => {
                let port = port.unwrap_or(0);
                let dim = if tensor.starts_with('I') { DimSource::Input(port) } else { DimSource::Output(port) };
                let axis = letter(name).ok_or_else(|| {
                    Error::invalid(format!(
                        "`{source}`: expected B, F, Y or X behind the dot, found `{}`",
                        shorten(name)
                    ))
                })?;
                from_end(shape(dim, node)?, axis).unwrap_or(1).to_string()
            }
            None => source.to_string(),
        },
    };
    let wrong = |what: &str| {
        Error::invalid(format!(
            "`source` is `{}`: expected an attribute of the operation, a dimension such as `I.X`, or {what}; found `{}`",
            shorten(source),
            shorten(&text)
        ))
    };
    match (is_float, to_number(&text)) {
        (true, Some(Number::Int(i))) => Ok(StageArgument::Float(i as f32)),
        (true, Some(Number::Float(x))) => Ok(StageArgument::Float(x as f32)),
        (false, Some(Number::Int(i))) => {
            i32::try_from(i).map(StageArgument::Int).map_err(|_| wrong("a number of 32 bits"))
        }
        (false, Some(Number::Float(x))) if x.fract() == 0.0 && x.abs() < 2147483648.0 => {
            Ok(StageArgument::Int(x as i32))
        }
        (false, _) => Err(wrong("an integer")),
        (true, None) => Err(wrong("a number")),
    }
}

#[cfg(test)]
mod tests;
