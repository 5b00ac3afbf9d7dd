//! Convolutions and products in bf16: operands are pairs of numbers of 16 bits, sums are floats, and what is done to a sum is
//! done in f32. The result is stored as bf16 where those who read it compute in it, too. What only moves elements moves them as
//! they are.

use super::conv::{attrs_of_op, shape_of, taps_of};
use super::leave::Leave;
use super::spatial::deconv_shape;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::{Op, Result};
use carafe_kernels::{
    Act, Conv, ConvShape, DeconvCells, Depthwise, Epilogue, Gemm, Machine, Numbers, WinogradPairs, brain_bits, winograd,
};
use carafe_ops::carafe::RmsNorm;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution};
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::normalization::Mvn;
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_plan::{Form, Known, Layout, Operand, RowStrides};
use carafe_tensor::{ElementType, Tensor};
use std::ops::Range;
use std::sync::Arc;

/// Numbers of a cell.
const PAIR: usize = 2;
/// Images of at most this many channels are convolved where they lie.
const FEW: usize = 4;

/// Whether a unit is to be computed in bf16. Asked before builders are; what they decline after all is computed in f32.
pub(crate) fn suits(op: &dyn Op, inputs: &[Known<'_>]) -> bool {
    let [data, weights, ..] = inputs else { return false };
    if inputs.iter().any(|p| p.is_fine) {
        return false;
    }
    if super::recurrent::suits_bf16(op, inputs) {
        return true;
    }
    if op.is::<ScaledDotProductAttention>() {
        return inputs.iter().take(3).all(|p| p.ty == ElementType::F32);
    }
    if data.ty != ElementType::F32 || weights.ty != ElementType::F32 || !weights.is_constant {
        return false;
    }
    let (Some(data), Some(weights)) = (data.shape, weights.shape) else { return false };
    let rank = weights.len();
    if op.is::<Convolution>() {
        // A single channel would fill half of each pair.
        return rank > 2 && (weights[1].is_multiple_of(PAIR) || (PAIR..FEW).contains(&weights[1]));
    }
    if op.is::<GroupConvolution>() {
        let depthwise = rank > 3 && weights[1] == 1 && weights[2] == 1;
        return rank > 3 && (depthwise || weights[2].is_multiple_of(PAIR));
    }
    if let Some(op) = op.get::<ConvolutionBackpropData>() {
        let touches = rank > 2 && op.strides.iter().zip(&weights[2..]).all(|(s, k)| usize::try_from(*s) == Ok(*k));
        return touches && weights[0].is_multiple_of(PAIR);
    }
    let Some(op) = op.get::<MatMul>() else { return false };
    let one = |s: &[usize]| s.iter().all(|&n| n == 1);
    rank > 1
        && data.len() > 1
        && one(&weights[..rank - 2])
        && !op.transpose_a
        && weights[if op.transpose_b { rank - 1 } else { rank - 2 }].is_multiple_of(PAIR)
}

/// Whether a unit that is not computed in bf16 reads and writes it where its neighbours do.
pub(crate) fn passes_on(op: &dyn Op, inputs: &[Known<'_>], group: bool) -> bool {
    let one_axis = || inputs.get(1).and_then(|axes| axes.shape).is_some_and(|s| s.iter().product::<usize>() == 1);
    let rows = (op.is::<Mvn>() || op.is::<RmsNorm>()) && one_axis();
    group || rows || op.info().moves.first() == Some(&0) || op.is::<MaxPool>() || op.is::<AvgPool>()
}

/// Whether a unit in bf16, or one that passes it on, reads this input so: not masks, nor factors of columns. Sums along a
/// transformer go from layer to layer, and each rounding of them stays to the end: normalizations and sums behind products read
/// them as floats, which costs nothing beside the products.
pub(crate) fn reads_narrow(op: &dyn Op, input: usize) -> bool {
    let most = match () {
        _ if op.is::<ScaledDotProductAttention>() => 3,
        _ if op.is::<Mvn>() || op.is::<RmsNorm>() => 0,
        _ if op.is::<MatMul>() || super::recurrent::is_recurrent(op) => 1,
        _ => usize::MAX,
    };
    input < most
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.precision == ElementType::Bf16 && site.op.is::<ScaledDotProductAttention>() {
        return super::attention::build(site);
    }
    if site.precision == ElementType::Bf16 && super::recurrent::is_recurrent(site.op) {
        return super::recurrent::build(site);
    }
    if site.group || site.before.is_some() || site.reordered() {
        return Ok(None);
    }
    if let Some(built) = moved(site)? {
        return Ok(Some(built));
    }
    if site.precision != ElementType::Bf16 {
        return Ok(None);
    }
    match site.op.get::<MatMul>() {
        Some(op) => product(site, op),
        None if site.op.is::<ConvolutionBackpropData>() => enlarged(site),
        None => convolution(site),
    }
}

// What only moves elements, as if the model said bf16.
fn moved(site: &Site<'_>) -> Result<Option<Built>> {
    let moves = site.op.info().moves.first() == Some(&0) && site.epilogue.is_empty();
    let lies_so = |p: &Port| p.stored == ElementType::Bf16 || p.constant.is_some();
    let mut numbers = site.inputs.iter().filter(|p| p.is_f32());
    let some = site.inputs.iter().any(|p| p.is_f32() && p.stored == ElementType::Bf16);
    // Where one part is bf16 and the whole is wanted so, the others are converted.
    let wanted = site.outputs.first().is_some_and(|p| p.preferred == Some(ElementType::Bf16));
    if !moves || !some || !(wanted || numbers.all(lies_so)) {
        return Ok(None);
    }
    let (from, to) = (ElementType::F32, ElementType::Bf16);
    let halved = |p: &Port| -> Result<Port> {
        let constant = p.constant.as_ref().map(|t| t.cast(to)).transpose()?;
        Ok(Port { ty: to, stored: to, constant, ..p.clone() })
    };
    let ports = |ports: &[Port]| -> Result<Vec<Port>> {
        ports.iter().map(|p| if p.ty == from { halved(p) } else { Ok(p.clone()) }).collect()
    };
    let (inputs, outputs, wanted) = (ports(&site.inputs)?, ports(&site.outputs)?, site.wanted.clone());
    let Some(mut built) = super::build_floats(&Site { inputs, outputs, wanted, ..*site })? else { return Ok(None) };
    for (i, form) in built.reads.iter_mut().filter(|(i, _)| site.inputs[*i].ty == from) {
        form.ty = Some(to);
        debug_assert!(*i < site.inputs.len());
    }
    for (port, form) in site.outputs.iter().zip(&mut built.outputs).filter(|(p, _)| p.ty == from) {
        form.ty = Some(to);
        debug_assert!(port.is_f32());
    }
    Ok(Some(built.with_precision(to)))
}

// The epilogue of sums that are floats already, stored as the readers want it.
fn leave_of(site: &Site<'_>, axis: usize, layout: Layout, reads: &mut Vec<(usize, Form)>) -> Option<Leave> {
    let columns = site.outputs[0].shape[axis];
    let mut leave = Leave::of(site, axis, layout, vec![1.0; columns], vec![0.0; columns], reads)?;
    if leave.scale.iter().all(|s| *s == 1.0) {
        leave.scale.clear();
    }
    leave.to_bf16 = leave.to.is_none() && site.outputs[0].preferred == Some(ElementType::Bf16);
    Some(leave)
}

#[derive(Clone, Debug)]
struct HalfConv {
    method: Method,
    weights: Packed,
    shape: ConvShape,
    /// Numbers from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    leave: Leave,
    /// The input is planes of floats.
    planar: bool,
}

#[derive(Clone, Debug)]
enum Method {
    Direct(Conv),
    Winograd(WinogradPairs),
}

impl Method {
    fn packed_floats(&self) -> usize {
        match self {
            Method::Direct(conv) => conv.packed_floats(),
            Method::Winograd(conv) => conv.packed_floats(),
        }
    }
}

fn convolution(site: &Site<'_>) -> Result<Option<Built>> {
    let Some((attrs, grouped)) = attrs_of_op(site.op) else { return Ok(None) };
    let (data, filters) = (&site.inputs[0], &site.inputs[1]);
    let Some(tensor) = &filters.constant else { return Ok(None) };
    let Some(whole) = shape_of([data, filters, &site.outputs[0]], &attrs, grouped) else { return Ok(None) };
    let (shape, kept) = whole.trimmed().unwrap_or((whole, whole.kernel.map(|k| 0..k)));
    let (isa, threads) = (site.cx.isa, site.cx.threads);
    let few = shape.in_channels <= FEW && shape.groups == 1;
    let planar = few && (data.layout == Layout::PLAIN || !shape.in_channels.is_multiple_of(PAIR));
    let read = match planar {
        true => Form::from(Layout::PLAIN),
        false => Form::typed(Layout::CHANNELS_LAST, ElementType::Bf16),
    };
    if Depthwise::fits(&shape) && !planar {
        return depthwise(site, tensor, (whole, shape), &kept);
    }
    let method = match !planar && winograd::worthwhile_in_pairs(isa, &shape, threads, Machine::here()) {
        true => Method::Winograd(WinogradPairs::new(isa, threads, shape)),
        false if planar => Method::Direct(Conv::of_planes(isa, threads, shape)),
        false => match Conv::of_cells(isa, threads, shape, Numbers::Bf16, 0) {
            Some(conv) => Method::Direct(conv),
            None => return Ok(None),
        },
    };
    let mut reads = vec![(0, read)];
    let Some(leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let way = if matches!(method, Method::Winograd(_)) { "winograd_bf16" } else { "conv_bf16" };
    let form = format!("{way}|{:?}x{:?} of {kept:?} {planar}", shape.kernel, shape.groups);
    let weights = site.cx.packed(&form, &[tensor], method.packed_floats(), |to: &mut [f32]| {
        let floats = floats_of(tensor)?;
        let floats = match shape == whole {
            true => floats,
            false => taps_of(&floats, &whole, &kept).into(),
        };
        match &method {
            Method::Winograd(conv) => conv.pack(site.cx.packers.exec().as_ref(), &floats, to),
            Method::Direct(conv) => conv.pack_bf16(&brain_bits(&floats), to),
        }
        tensor.release();
        Ok(())
    })?;
    let output = leave.form(Layout::CHANNELS_LAST);
    let strides = [shape.in_channels, shape.out_channels];
    Ok(Some(Built::step(HalfConv { method, weights, shape, strides, leave, planar }, reads, output)))
}

impl Step<Cpu> for HalfConv {
    fn kernel(&self) -> String {
        let method = match (&self.method, self.planar) {
            (Method::Winograd(_), _) => "winograd",
            (_, true) => "planar",
            _ if self.shape.is_pointwise() => "gemm",
            _ => "direct",
        };
        let kernel = self.shape.kernel.map(|k| k.to_string()).join("x");
        format!("conv_{method}_{}{}", kernel.trim_start_matches("1x"), self.leave.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(match &self.method {
            Method::Direct(conv) => conv.scratch_floats(),
            Method::Winograd(conv) => conv.scratch_floats(),
        })
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            // Cells of the direct way must not be cut apart.
            Operand::Read(0) => matches!(self.method, Method::Winograd(_)) && row == self.shape.in_channels,
            Operand::Read(i) => self.leave.is_matrix(i) && row == self.shape.out_channels,
            Operand::Write(_) => row == self.shape.out_channels,
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let mut step = self.clone();
        step.strides = [strides.read(0, self.shape.in_channels), strides.write(0, self.shape.out_channels)];
        step.leave.strides = RowStrides { reads: strides.reads.clone(), writes: vec![] };
        Some(Arc::new(step))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        self.leave.with(io, self.shape.out_channels, |io, epilogue, out| {
            let (numbers, weights) = (io.inputs[0], self.weights.as_slice());
            match &self.method {
                Method::Direct(conv) => {
                    conv.run_typed(io.exec, bytemuck::cast_slice(numbers), weights, out, to, epilogue);
                }
                Method::Winograd(conv) => {
                    conv.run(io.exec, bytemuck::cast_slice(numbers), from, weights, out, to, epilogue);
                }
            }
        });
        Ok(())
    }
}

/// Each channel by itself: floats are computed with, bf16 is read and written.
#[derive(Clone, Debug)]
struct HalfDepthwise {
    conv: Depthwise,
    weights: Packed,
    kernel: [usize; 3],
    channels: usize,
    /// Numbers from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    bias: Vec<f32>,
    act: Act,
    /// A factor and a term behind the function.
    after: [f32; 2],
    name: String,
}

fn depthwise(
    site: &Site<'_>,
    tensor: &Tensor,
    (whole, shape): (ConvShape, ConvShape),
    kept: &[Range<usize>; 3],
) -> Result<Option<Built>> {
    let form = Form::typed(Layout::CHANNELS_LAST, ElementType::Bf16);
    let mut reads = vec![(0, form)];
    let Some(leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let name = leave.name().to_string();
    let Leave { scale, bias, round_trip, add, act, after, rest, to_bf16, .. } = leave;
    let after = after.unwrap_or([1.0, 0.0]);
    let plain = round_trip.is_none() && add.is_none() && rest.is_none() && Depthwise::does(act, after);
    if !plain || !to_bf16 || !scale.is_empty() {
        return Ok(None);
    }
    let conv = Depthwise::new(site.cx.isa, site.cx.threads, shape);
    let key = format!("depthwise|{:?}x{:?} of {kept:?}", shape.kernel, shape.groups);
    let weights = site.cx.packed(&key, &[tensor], conv.packed_floats(), |to: &mut [f32]| {
        let floats = floats_of(tensor)?;
        match shape == whole {
            true => conv.pack(&floats, to),
            false => conv.pack(&taps_of(&floats, &whole, kept), to),
        }
        tensor.release();
        Ok(())
    })?;
    let (kernel, channels) = (shape.kernel, shape.in_channels);
    let step = HalfDepthwise { conv, weights, kernel, channels, strides: [channels; 2], bias, act, after, name };
    Ok(Some(Built::step(step, reads, form)))
}

impl Step<Cpu> for HalfDepthwise {
    fn kernel(&self) -> String {
        let kernel = self.kernel.map(|k| k.to_string()).join("x");
        format!("conv_depthwise_{}{}", kernel.trim_start_matches("1x"), self.name)
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        matches!(operand, Operand::Read(0) | Operand::Write(_)) && row == self.channels
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.channels), strides.write(0, self.channels)];
        Some(Arc::new(HalfDepthwise { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let epilogue = Epilogue { bias: Some(&self.bias), act: self.act, ..Epilogue::default() };
        let (out, io) = io.take_output(0);
        let weights = self.weights.as_slice();
        self.conv.run_brains(io.exec, (io.input(0), from), weights, (out, to), &epilogue, self.after);
        Ok(())
    }
}

/// A transposed convolution whose windows touch.
#[derive(Debug)]
struct HalfDeconv {
    conv: DeconvCells,
    weights: Packed,
    leave: Leave,
}

fn enlarged(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(shape) = deconv_shape(site).filter(|s| DeconvCells::fits(s, Numbers::Bf16)) else { return Ok(None) };
    let Some(tensor) = &site.inputs[1].constant else { return Ok(None) };
    let mut reads = vec![(0, Form::typed(Layout::CHANNELS_LAST, ElementType::Bf16))];
    let Some(mut leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let plain = leave.scale.is_empty() && leave.offset.is_empty() && leave.round_trip.is_none() && leave.to.is_none();
    if !plain || leave.add.is_some() || leave.rest.is_some() {
        return Ok(None);
    }
    leave.spread(shape.kernel.iter().product(), |_, _| 0.0);
    let conv = DeconvCells::new(site.cx.isa, shape, Numbers::Bf16);
    let form = format!("deconv_bf16|{:?}", shape.kernel);
    let weights = site.cx.packed(&form, &[tensor], conv.packed_floats(), |to: &mut [f32]| {
        conv.pack_bf16(&brain_bits(&floats_of(tensor)?), to);
        tensor.release();
        Ok(())
    })?;
    let output = leave.form(Layout::CHANNELS_LAST);
    Ok(Some(Built::step(HalfDeconv { conv, weights, leave }, reads, output)))
}

impl Step<Cpu> for HalfDeconv {
    fn kernel(&self) -> String {
        format!("deconv{}", self.leave.name())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.leave.with(io, self.conv.columns(), |io, epilogue, out| {
            let cells = bytemuck::cast_slice(io.inputs[0]);
            self.conv.run(io.exec, cells, self.weights.as_slice(), out, epilogue);
        });
        Ok(())
    }
}

#[derive(Debug)]
struct HalfProduct {
    gemm: Gemm,
    weights: Packed,
    rows: usize,
    leave: Leave,
}

fn product(site: &Site<'_>, op: &MatMul) -> Result<Option<Built>> {
    let (a, b, out) = (&site.inputs[0], &site.inputs[1], &site.outputs[0]);
    let Some(tensor) = &b.constant else { return Ok(None) };
    let (last, before) = (b.shape[b.rank() - 1], b.shape[b.rank() - 2]);
    let (k, n) = if op.transpose_b { (last, before) } else { (before, last) };
    if k == 0 {
        return Ok(None);
    }
    let Some(gemm) = Gemm::of_cells(site.cx.isa, Numbers::Bf16, n, k) else { return Ok(None) };
    let mut reads = vec![(0, Form::typed(Layout::PLAIN, ElementType::Bf16))];
    let Some(leave) = leave_of(site, out.rank() - 1, Layout::PLAIN, &mut reads) else { return Ok(None) };
    let form = format!("gemm_bf16|{k}x{n}|{}", op.transpose_b);
    let weights = site.cx.packed(&form, &[tensor], gemm.packed_floats(), |to: &mut [f32]| {
        gemm.pack_bf16(&brain_bits(&floats_of(tensor)?), op.transpose_b, to);
        tensor.release();
        Ok(())
    })?;
    let output = leave.form(Layout::PLAIN);
    Ok(Some(Built::step(HalfProduct { gemm, weights, rows: a.len() / k, leave }, reads, output)))
}

impl Step<Cpu> for HalfProduct {
    fn kernel(&self) -> String {
        format!("gemm{}", self.leave.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.gemm.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (k, n) = (self.gemm.k(), self.gemm.n());
        self.leave.with(io, n, |io, epilogue, out| {
            let rows = (self.rows, bytemuck::cast_slice(io.inputs[0]), k);
            self.gemm.run_typed(io.exec, Numbers::Bf16, rows, self.weights.as_slice(), out, n, epilogue);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::compiled::Compiled;
    use carafe_device::{CompiledModel, Properties};
    use carafe_graph::{Model, Value};
    use carafe_ops::activation::Relu;
    use carafe_ops::convolution::Convolution;
    use carafe_ops::convolution::window::PadType;
    use carafe_ops::linear::MatMul;
    use carafe_ops::movement::Reshape;
    use carafe_tensor::{ElementType, PartialShape, Tensor};
    use std::sync::Arc;

    fn numbers(shape: &[usize], scale: f32) -> Tensor {
        let len: usize = shape.iter().product();
        let data = (0..len).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0);
        Tensor::from_vec(shape, data.map(|x| x * scale).collect::<Vec<f32>>()).unwrap()
    }

    // A convolution of planes, one of pixels, and a product.
    fn net() -> Model {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 9, 8])).unwrap();
        let conv = || Convolution {
            strides: vec![1; 2],
            pads_begin: vec![1; 2],
            pads_end: vec![1; 2],
            dilations: vec![1; 2],
            auto_pad: PadType::Explicit,
        };
        let w = m.constant("w1", numbers(&[10, 3, 3, 3], 0.2)).unwrap();
        let a: Value = m.add("a", conv(), &[x, w]).unwrap().into();
        let a: Value = m.add("relu", Relu, &[a]).unwrap().into();
        let w = m.constant("w2", numbers(&[6, 10, 3, 3], 0.1)).unwrap();
        let b: Value = m.add("b", conv(), &[a, w]).unwrap().into();
        let shape = m.constant("shape", Tensor::from_slice(&[2], &[6i64, 72]).unwrap()).unwrap();
        let rows: Value = m.add("rows", Reshape { special_zero: false }, &[b, shape]).unwrap().into();
        let w = m.constant("w3", numbers(&[72, 5], 0.1)).unwrap();
        let y = m.add("y", MatMul { transpose_a: false, transpose_b: false }, &[rows, w]).unwrap();
        m.result("r", y.into()).unwrap();
        m
    }

    #[test]
    fn the_twin_of_the_instructions_computes_whole_models_on_every_machine() {
        let f32 = Properties::new().with("INFERENCE_PRECISION_HINT", "f32");
        let output = |compiled: Compiled| {
            let mut request = Arc::new(compiled).create_request();
            request.set_input(0, numbers(&[1, 3, 9, 8], 1.0)).unwrap();
            request.infer().unwrap();
            request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned()
        };
        let wanted = output(Compiled::new(net(), &[], &f32).unwrap());
        let mut compiled = Compiled::new(net(), &[], &f32).unwrap();
        let planner = Arc::get_mut(&mut compiled.planner).unwrap();
        planner.backend.bf16 = true;
        planner.take_plans();
        planner.prepare().unwrap();
        let steps: Vec<_> = compiled.planner.last_plans().iter().flat_map(|p| &p.steps).map(|s| s.precision).collect();
        assert!(steps.iter().filter(|p| **p == ElementType::Bf16).count() >= 3, "{steps:?}");
        let largest = wanted.iter().fold(0f32, |m, x| m.max(x.abs()));
        for (x, y) in output(compiled).iter().zip(&wanted) {
            assert!((x - y).abs() <= 0.02 * largest, "{x} {y} of {largest}");
        }
    }
}
