//! Steps of users' kernels: the kernels themselves, with a change of order of axes before and after those that want another format.
//! Where the device has no halves, kernels get floats in their place.

use super::{Built, Port, Site};
use crate::backend::BuildCx;
use crate::custom::{CustomOp, Layer, attrs_of, port_name};
use crate::launch::{Arg, Launch, Launches};
use crate::machine::ALIGNMENT;
use crate::programs::Source;
use carafe_custom_kernels::gpu::{CallArgument, GpuLayer};
use carafe_custom_kernels::vpu::{self, Binding, BindingValue, BoundStage, StageArgument, VpuLayer};
use carafe_custom_kernels::{Format, NodeView, PortView, TensorLayout, parameters};
use carafe_graph::{Error, Result};
use carafe_plan::{Form, Layout};
use carafe_tensor::{ElementType, f16};
use std::collections::BTreeMap;

const PERMUTE: Source = Source("custom_permute.cl");

/// The step of a node that has a kernel of a user.
pub(crate) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<CustomOp>() else { return Ok(None) };
    if site.group || site.before.is_some() {
        return Ok(None);
    }
    let cx = site.cx;
    let port = |(i, port): (usize, &Port), is_input: bool| PortView {
        name: if is_input { port_name(&*op.inner, i).into() } else { String::new() },
        ty: kernel_type(cx, port.ty),
        shape: port.shape.clone(),
        is_constant: port.constant.is_some(),
    };
    let node = NodeView {
        attrs: attrs_of(&*op.inner),
        inputs: site.inputs[..site.own_inputs].iter().enumerate().map(|p| port(p, true)).collect(),
        outputs: site.outputs.iter().enumerate().map(|p| port(p, false)).collect(),
    };
    let mut step = Assembly::new(cx);
    let name = match &op.layer {
        Layer::Gpu(layer) => step.gpu(layer, &node)?,
        Layer::Vpu(layer) => step.vpu(layer, &node)?,
    };
    let form = |port: &Port| match kernel_type(cx, port.ty) {
        ty if ty == port.ty => Layout::PLAIN.into(),
        ty => Form::typed(Layout::PLAIN, ty),
    };
    let reads: Vec<(usize, Form)> = step.reads.iter().map(|&i| (i, form(&site.inputs[i]))).collect();
    let outputs: Vec<Form> = site.outputs.iter().map(form).collect();
    let workspace = step.workspace;
    let mut launches = step.launches;
    launches.extend(step.after);
    let built = Launches::new(name, launches).named_as_is().built(reads, outputs);
    Ok(Some(built.with_workspace(workspace).taking(0)))
}

// The type in which a kernel gets a value.
fn kernel_type(cx: &BuildCx, ty: ElementType) -> ElementType {
    match ty {
        ElementType::F32 if cx.half && has_halves(cx) => ElementType::F16,
        ElementType::F16 if !has_halves(cx) => ElementType::F32,
        ty => ty,
    }
}

fn has_halves(cx: &BuildCx) -> bool {
    cx.machine.info().has("cl_khr_fp16")
}

/// A step while it is put together.
struct Assembly<'a> {
    cx: &'a BuildCx,
    /// Inputs that it reads.
    reads: Vec<usize>,
    /// Tensors in another order, in the workspace: whether an output, port, format.
    moved: BTreeMap<(bool, usize, &'static str), Arg>,
    launches: Vec<Launch>,
    /// What follows the kernels.
    after: Vec<Launch>,
    workspace: usize,
    /// Part of the batch that kernels see, where they see one after another.
    item: Option<usize>,
}

impl<'a> Assembly<'a> {
    fn new(cx: &'a BuildCx) -> Assembly<'a> {
        let (reads, moved, launches, after) = (vec![], BTreeMap::new(), vec![], vec![]);
        Assembly { cx, reads, moved, launches, after, workspace: 0, item: None }
    }

    fn gpu(&mut self, layer: &GpuLayer, node: &NodeView) -> Result<String> {
        let call = layer.bind(node)?;
        let located = |e: Error| e.at(format!("custom kernel `{}` ({})", layer.name, layer.location));
        // What cannot be read here the driver will tell.
        if let Ok(Some(list)) = parameters(&call.source, &call.entry)
            && list.len() != call.arguments.len()
        {
            return Err(located(Error::invalid(format!(
                "kernel `{}` has {} parameters, and <Buffers> gives {} arguments",
                call.entry,
                list.len(),
                call.arguments.len()
            ))));
        }
        let mut args = vec![];
        for argument in &call.arguments {
            args.push(match *argument {
                CallArgument::Input { port, format } => self.input(node, port, format)?,
                CallArgument::Output { port, format } => self.output(node, port, format)?,
                CallArgument::Internal { bytes } => self.memory(bytes),
            });
        }
        let kernel = self.cx.custom(&call.source, &call.options, &call.entry).map_err(located)?;
        self.launch(Launch { kernel, args, global: sizes(&call.global), local: local(&call.local) });
        Ok(format!("custom {}", call.entry))
    }

    fn vpu(&mut self, layer: &VpuLayer, node: &NodeView) -> Result<String> {
        // Kernels of the chip see one part of the batch after another.
        let batch = batch_of(layer, node);
        let mut node = node.clone();
        if batch > 1 {
            let ports = node.inputs.iter_mut().chain(&mut node.outputs);
            ports.filter(|p| p.shape.len() == 4 && p.shape[0] == batch).for_each(|p| p.shape[0] = 1);
        }
        let bound = layer.bind(&node)?;
        let located = |e: Error| e.at(format!("custom layer `{}` ({})", layer.name, layer.location));
        // Sizes in the file count halves; floats in their place need twice as much.
        let scale = if has_halves(self.cx) { 1 } else { 2 };
        let buffers: BTreeMap<usize, Arg> =
            bound.buffers.iter().map(|(id, bytes)| (*id, self.memory(bytes.saturating_mul(scale)))).collect();
        // Kernels turn an extension on that is not there, which the compiler would report each time.
        let options = if has_halves(self.cx) { "" } else { "-w" };
        // The driver decides how many groups run at once; what the file asked for is shown.
        let shown = |s: &vpu::BoundStage| match s.max_shaves {
            0 => s.entry.clone(),
            n => format!("{} (max-shaves {n})", s.entry),
        };
        let entries: Vec<String> = bound.stages.iter().map(shown).collect();
        for item in 0..batch {
            self.item = Some(item).filter(|_| batch > 1);
            for stage in &bound.stages {
                let args = self.stage_args(stage, &node, &buffers, scale).map_err(located)?;
                let (source, entry) = vpu::stage_source(stage, has_halves(self.cx));
                let kernel = self.cx.custom(&source, options, &entry).map_err(located)?;
                self.launch(Launch { kernel, args, global: sizes(&stage.global), local: local(&stage.local) });
            }
            self.launches.append(&mut self.after);
        }
        Ok(format!("custom {}", entries.join(" ")))
    }

    fn stage_args(
        &mut self,
        stage: &BoundStage,
        node: &NodeView,
        buffers: &BTreeMap<usize, Arg>,
        scale: usize,
    ) -> Result<Vec<Arg>> {
        let mut args = vec![];
        for (argument, parameter) in stage.arguments.iter().zip(&stage.parameters) {
            args.push(match *argument {
                StageArgument::Input { port, format } => {
                    check_pointer(&parameter.ty, &parameter.name, node.inputs[port].ty, scale == 1)?;
                    self.input(node, port, format)?
                }
                StageArgument::Output { port, format } => {
                    check_pointer(&parameter.ty, &parameter.name, node.outputs[port].ty, scale == 1)?;
                    self.output(node, port, format)?
                }
                StageArgument::Buffer { id } => {
                    let missing = || Error::invalid(format!("nothing says the size of buffer {id}"));
                    buffers.get(&id).cloned().ok_or_else(missing)?
                }
                StageArgument::Local { bytes } => Arg::Local(bytes.saturating_mul(scale)),
                StageArgument::Int(n) => number(f64::from(n), &parameter.ty, scale == 1)?,
                StageArgument::Float(x) => number(f64::from(x), &parameter.ty, scale == 1)?,
            });
        }
        Ok(args)
    }

    fn launch(&mut self, launch: Launch) {
        // Nothing to do for a tensor without elements.
        if launch.global.iter().all(|n| *n > 0) {
            self.launches.push(launch);
        }
    }

    fn memory(&mut self, bytes: usize) -> Arg {
        let start = self.workspace;
        self.workspace = start.saturating_add(bytes.max(1)).next_multiple_of(ALIGNMENT);
        Arg::Workspace(start, bytes.max(1))
    }

    // Elements before the part of the batch that kernels see now; `None` where they see the whole tensor.
    fn offset(&self, view: &PortView, format: Format) -> Option<usize> {
        let item = self.item.filter(|_| format != Format::Any && view.shape.len() == 4)?;
        Some(item * view.shape.iter().product::<usize>())
    }

    fn input(&mut self, node: &NodeView, port: usize, format: Format) -> Result<Arg> {
        let at = self.reads.iter().position(|p| *p == port).unwrap_or_else(|| {
            self.reads.push(port);
            self.reads.len() - 1
        });
        let view = &node.inputs[port];
        let offset = self.offset(view, format);
        if format.is_plain() && offset.is_none() {
            return Ok(Arg::Read(at));
        }
        let key = (false, port, format.name());
        let known = self.moved.get(&key).cloned();
        if let (Some(moved), None) = (&known, offset) {
            return Ok(moved.clone());
        }
        let moved = known.unwrap_or_else(|| self.memory(bytes_of(view)));
        self.moved.insert(key, moved.clone());
        let plain = TensorLayout::new(&view.shape, Format::Bfyx, view.ty)?;
        let order = format.order();
        let (dims, pitches) = (order.map(|axis| plain.dims[axis]), plain.pitches());
        let steps = order.map(|axis| pitches[axis]);
        let from = (Arg::Read(at), offset.unwrap_or(0));
        let launch = self.permute(view.ty, from, (moved.clone(), 0), dims, steps)?;
        self.launch(launch);
        Ok(moved)
    }

    fn output(&mut self, node: &NodeView, port: usize, format: Format) -> Result<Arg> {
        let view = &node.outputs[port];
        let offset = self.offset(view, format);
        if format.is_plain() && offset.is_none() {
            return Ok(Arg::Write(port));
        }
        let key = (true, port, format.name());
        let made = self.moved.get(&key).cloned().unwrap_or_else(|| self.memory(bytes_of(view)));
        self.moved.insert(key, made.clone());
        let lies = TensorLayout::new(&view.shape, format, view.ty)?;
        let pitches = lies.pitches();
        let (dims, steps) = (std::array::from_fn(|i| lies.dims[i]), std::array::from_fn(|i| pitches[i]));
        let launch = self.permute(view.ty, (made.clone(), 0), (Arg::Write(port), offset.unwrap_or(0)), dims, steps)?;
        if launch.global.iter().all(|n| *n > 0) {
            self.after.push(launch);
        }
        Ok(made)
    }

    // Writes a tensor of these sizes plainly, out of one with these steps along the same axes.
    fn permute(
        &self,
        ty: ElementType,
        from: (Arg, usize),
        to: (Arg, usize),
        dims: [usize; 4],
        steps: [usize; 4],
    ) -> Result<Launch> {
        let element = match ty.byte_len(1) {
            Some(1) => "uchar",
            Some(2) => "ushort",
            Some(4) => "uint",
            Some(8) => "ulong",
            _ => return Err(Error::unsupported(format!("a custom kernel cannot have {ty} in another format"))),
        };
        let kernel = self.cx.kernel(&PERMUTE, "custom_permute", &[("ELEMENT", element.into())])?;
        let count = dims.iter().product::<usize>();
        let mut args = vec![from.0, to.0, from.1.into(), to.1.into()];
        args.extend(dims[1..].iter().chain(&steps).map(|n| Arg::from(*n)));
        args.push(count.into());
        Ok(Launch::flat(&kernel, args, count, self.cx.group()))
    }
}

// The batch of a node whose kernels see one part of it after another: not where a tensor is taken in any format.
fn batch_of(layer: &VpuLayer, node: &NodeView) -> usize {
    let bindings = || layer.stages.iter().flat_map(|s| &s.bindings);
    let any = |b: &Binding| {
        let format = match &b.value {
            BindingValue::Input { format, .. } | BindingValue::Output { format, .. } => *format,
            _ => return false,
        };
        format == Format::Any
    };
    let ports = bindings().filter_map(|b| match b.value {
        BindingValue::Input { port, .. } => node.inputs.get(port),
        _ => None,
    });
    let first = ports.into_iter().next().filter(|p| p.shape.len() == 4);
    let outputs_agree = |n: usize| node.outputs.iter().all(|o| o.shape.len() == 4 && o.shape[0] == n);
    match first.map(|p| p.shape[0]) {
        Some(batch) if !bindings().any(any) && outputs_agree(batch) => batch,
        _ => 1,
    }
}

fn bytes_of(port: &PortView) -> usize {
    port.ty.byte_len(port.shape.iter().product()).unwrap_or(0)
}

fn sizes(list: &[usize]) -> [usize; 3] {
    std::array::from_fn(|i| list.get(i).copied().unwrap_or(1))
}

fn local(list: &[usize]) -> Option<[usize; 3]> {
    if list.is_empty() { None } else { Some(sizes(list)) }
}

// Refuses a tensor whose elements are not as wide as those that the kernel reads or writes: it would go beyond its memory. The
// files do not name types, the chip had halves alone.
fn check_pointer(parameter: &str, name: &str, tensor: ElementType, has_halves: bool) -> Result<()> {
    let target = parameter.trim_end_matches(['*', ' ']).trim_start_matches("unsigned ").trim_start_matches("signed ");
    let wanted = match target.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "half" if has_halves => 2,
        "half" | "float" | "int" | "uint" | "unsigned" | "signed" => 4,
        "char" | "uchar" | "bool" => 1,
        "short" | "ushort" => 2,
        "long" | "ulong" | "double" => 8,
        // A type of the kernel's own: the author knows.
        _ => return Ok(()),
    };
    let floats = matches!(target.trim_end_matches(|c: char| c.is_ascii_digit()), "half" | "float" | "double");
    if tensor.byte_len(1) == Some(wanted) && (!floats || tensor.is_float()) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "parameter `{name}` is of type `{parameter}`, and the tensor of {tensor}; convert it to f16 or f32"
    )))
}

// A number in the type that the kernel's parameter has.
fn number(x: f64, ty: &str, has_halves: bool) -> Result<Arg> {
    Ok(match ty {
        "float" => Arg::Float(x as f32),
        "half" if has_halves => Arg::Value(f16::from_f64(x).to_ne_bytes().to_vec()),
        "half" => Arg::Float(x as f32),
        "int" | "signed" | "signed int" => Arg::Int(x as i32),
        "uint" | "unsigned" | "unsigned int" => Arg::Value((x as u32).to_ne_bytes().to_vec()),
        "long" => Arg::Value((x as i64).to_ne_bytes().to_vec()),
        "ulong" | "unsigned long" => Arg::Value((x as u64).to_ne_bytes().to_vec()),
        "short" => Arg::Value((x as i16).to_ne_bytes().to_vec()),
        "ushort" | "unsigned short" => Arg::Value((x as u16).to_ne_bytes().to_vec()),
        "char" | "signed char" => Arg::Value(vec![x as i8 as u8]),
        "uchar" | "unsigned char" => Arg::Value(vec![x as u8]),
        other => return Err(Error::unsupported(format!("a number for a parameter of type `{other}`"))),
    })
}
