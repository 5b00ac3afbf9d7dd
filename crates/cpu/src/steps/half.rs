//! Convolutions and products in bf16 or f16: operands are pairs of numbers of 16 bits, sums are floats, and what is done to a
//! sum is done in f32. The result is stored in the same type where those who read it compute in it, too. What only moves
//! elements moves them as they are.

use super::conv::{attrs_of_op, shape_of, taps_of};
use super::leave::Leave;
use super::spatial::deconv_shape;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::{Op, Result};
use carafe_kernels::{
    Act, Conv, ConvShape, DeconvCells, Depthwise, Epilogue, Gemm, Halves, Machine, Numbers, WinogradPairs, winograd,
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

/// The element type of numbers of 16 bits.
pub(crate) fn type_of(halves: Halves) -> ElementType {
    match halves {
        Halves::Bf16 => ElementType::Bf16,
        Halves::F16 => ElementType::F16,
    }
}

/// The other way round.
pub(crate) fn of(ty: ElementType) -> Option<Halves> {
    [Halves::Bf16, Halves::F16].into_iter().find(|halves| type_of(*halves) == ty)
}

/// The type of 16 bits that a unit is computed in, if it is.
pub(super) fn computed_in(site: &Site<'_>) -> Option<Halves> {
    site.cx.half.filter(|halves| site.precision == type_of(*halves))
}

/// The type of 16 bits that readers of the result prefer, if they do.
pub(super) fn preferred(site: &Site<'_>) -> Option<Halves> {
    site.outputs.first()?.preferred.and_then(of)
}

/// Whether a unit is to be computed in a type of 16 bits. Asked before builders are; what they decline after all is computed in
/// f32.
pub(crate) fn suits(op: &dyn Op, inputs: &[Known<'_>], halves: Halves) -> bool {
    let [data, weights, ..] = inputs else { return false };
    if inputs.iter().any(|p| p.is_fine) {
        return false;
    }
    if super::recurrent::suits_bf16(op, inputs) {
        return halves == Halves::Bf16;
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
        // A single channel fills half of each pair, which takes no longer than floats do, and the result is half as long. What goes
        // along one axis of a single channel filters a signal: it keeps its digits.
        let image = || weights[2..].iter().filter(|&&n| n > 1).count() > 1;
        let few = weights[1] < FEW && (weights[1] > 1 || image());
        return rank > 2 && (weights[1].is_multiple_of(PAIR) || few);
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

/// Whether a unit that is not computed in 16 bits reads and writes them where its neighbours do.
pub(crate) fn passes_on(op: &dyn Op, inputs: &[Known<'_>], group: bool) -> bool {
    let one_axis = || inputs.get(1).and_then(|axes| axes.shape).is_some_and(|s| s.iter().product::<usize>() == 1);
    let rows = (op.is::<Mvn>() || op.is::<RmsNorm>()) && one_axis();
    group || rows || op.info().moves.first() == Some(&0) || op.is::<MaxPool>() || op.is::<AvgPool>()
}

/// Whether a unit in 16 bits, or one that passes them on, reads this input so: not masks, nor factors of columns. Sums along a
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
    let halves = computed_in(site);
    if halves.is_some() && site.op.is::<ScaledDotProductAttention>() {
        return super::attention::build(site);
    }
    if halves.is_some() && super::recurrent::is_recurrent(site.op) {
        return super::recurrent::build(site);
    }
    if site.group || site.before.is_some() || site.reordered() {
        return Ok(None);
    }
    if let Some(built) = moved(site)? {
        return Ok(Some(built));
    }
    let Some(halves) = halves else { return Ok(None) };
    match site.op.get::<MatMul>() {
        Some(op) => product(site, op, halves),
        None if site.op.is::<ConvolutionBackpropData>() => enlarged(site, halves),
        None => convolution(site, halves),
    }
}

// What only moves elements, as if the model said that type.
fn moved(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(to) = site.cx.half.map(type_of) else { return Ok(None) };
    let moves = site.op.info().moves.first() == Some(&0) && site.epilogue.is_empty();
    let lies_so = |p: &Port| p.stored == to || p.constant.is_some();
    let mut numbers = site.inputs.iter().filter(|p| p.is_f32());
    let some = site.inputs.iter().any(|p| p.is_f32() && p.stored == to);
    // Where one part lies so and the whole is wanted so, the others are converted.
    let wanted = site.outputs.first().is_some_and(|p| p.preferred == Some(to));
    if !moves || !some || !(wanted || numbers.all(lies_so)) {
        return Ok(None);
    }
    let from = ElementType::F32;
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
    leave.to_half = preferred(site).filter(|_| leave.to.is_none());
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

fn convolution(site: &Site<'_>, halves: Halves) -> Result<Option<Built>> {
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
        false => Form::typed(Layout::CHANNELS_LAST, type_of(halves)),
    };
    if Depthwise::fits(&shape) && !planar {
        return depthwise(site, halves, tensor, (whole, shape), &kept);
    }
    // Vectors multiply f16 as floats, of which Winograd's method needs fewer.
    let as_floats = halves == Halves::F16 && !isa.has_tiles_of_halves() && !site.cx.strict_f32;
    if as_floats && !planar && winograd::worthwhile(&shape, threads, Machine::here()) {
        return Ok(None);
    }
    // Transformed numbers are those of bf16 alone.
    let tiles = !planar && halves == Halves::Bf16;
    let method = match tiles && winograd::worthwhile_in_pairs(isa, &shape, threads, Machine::here()) {
        true => Method::Winograd(WinogradPairs::new(isa, threads, shape)),
        false if planar => Method::Direct(Conv::of_planes(isa, threads, shape, halves)),
        false => match Conv::of_cells(isa, threads, shape, halves.numbers(), 0) {
            Some(conv) => Method::Direct(conv),
            None => return Ok(None),
        },
    };
    let mut reads = vec![(0, read)];
    let Some(leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let way = if matches!(method, Method::Winograd(_)) { "winograd" } else { "conv" };
    let form = format!("{way}_{}|{:?}x{:?} of {kept:?} {planar}", halves.name(), shape.kernel, shape.groups);
    let weights = site.cx.packed(&form, &[tensor], method.packed_floats(), |to: &mut [f32]| {
        let floats = floats_of(tensor)?;
        let floats = match shape == whole {
            true => floats,
            false => taps_of(&floats, &whole, &kept).into(),
        };
        match &method {
            Method::Winograd(conv) => conv.pack(site.cx.packers.exec().as_ref(), &floats, to),
            Method::Direct(conv) => conv.pack_halves(&halves.all_bits(&floats), to),
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
    fn runs_in_place(&self, read: usize) -> bool {
        self.leave.runs_in_place(read)
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

/// Each channel by itself: floats are computed with, numbers of 16 bits are read and written.
#[derive(Clone, Debug)]
struct HalfDepthwise {
    conv: Depthwise,
    halves: Halves,
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
    halves: Halves,
    tensor: &Tensor,
    (whole, shape): (ConvShape, ConvShape),
    kept: &[Range<usize>; 3],
) -> Result<Option<Built>> {
    let form = Form::typed(Layout::CHANNELS_LAST, type_of(halves));
    let mut reads = vec![(0, form)];
    let Some(leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let name = leave.name().to_string();
    let Leave { scale, bias, round_trip, add, act, after, rest, to_half, .. } = leave;
    let after = after.unwrap_or([1.0, 0.0]);
    let plain = round_trip.is_none() && add.is_none() && rest.is_none() && Depthwise::does(act, after);
    if !plain || to_half.is_none() || !scale.is_empty() {
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
    let step =
        HalfDepthwise { conv, halves, weights, kernel, channels, strides: [channels; 2], bias, act, after, name };
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
        self.conv.run_halves(io.exec, self.halves, (io.input(0), from), weights, (out, to), &epilogue, self.after);
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

fn enlarged(site: &Site<'_>, halves: Halves) -> Result<Option<Built>> {
    let Some(shape) = deconv_shape(site).filter(|s| DeconvCells::fits(s, halves.numbers())) else { return Ok(None) };
    let Some(tensor) = &site.inputs[1].constant else { return Ok(None) };
    let mut reads = vec![(0, Form::typed(Layout::CHANNELS_LAST, type_of(halves)))];
    let Some(mut leave) = leave_of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let plain = leave.scale.is_empty() && leave.offset.is_empty() && leave.round_trip.is_none() && leave.to.is_none();
    if !plain || leave.add.is_some() || leave.rest.is_some() {
        return Ok(None);
    }
    leave.spread(shape.kernel.iter().product(), |_, _| 0.0);
    let conv = DeconvCells::new(site.cx.isa, shape, halves.numbers());
    let form = format!("deconv_{}|{:?}", halves.name(), shape.kernel);
    let weights = site.cx.packed(&form, &[tensor], conv.packed_floats(), |to: &mut [f32]| {
        conv.pack_halves(&halves.all_bits(&floats_of(tensor)?), to);
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
    numbers: Numbers,
    weights: Packed,
    rows: usize,
    leave: Leave,
}

fn product(site: &Site<'_>, op: &MatMul, halves: Halves) -> Result<Option<Built>> {
    let (a, b, out) = (&site.inputs[0], &site.inputs[1], &site.outputs[0]);
    let Some(tensor) = &b.constant else { return Ok(None) };
    let (last, before) = (b.shape[b.rank() - 1], b.shape[b.rank() - 2]);
    let (k, n) = if op.transpose_b { (last, before) } else { (before, last) };
    if k == 0 {
        return Ok(None);
    }
    let numbers = halves.numbers();
    let Some(gemm) = Gemm::of_cells(site.cx.isa, numbers, n, k) else { return Ok(None) };
    let mut reads = vec![(0, Form::typed(Layout::PLAIN, type_of(halves)))];
    let Some(leave) = leave_of(site, out.rank() - 1, Layout::PLAIN, &mut reads) else { return Ok(None) };
    let form = format!("gemm_{}|{k}x{n}|{}", halves.name(), op.transpose_b);
    let weights = site.cx.packed(&form, &[tensor], gemm.packed_floats(), |to: &mut [f32]| {
        gemm.pack_halves(&halves.all_bits(&floats_of(tensor)?), op.transpose_b, to);
        tensor.release();
        Ok(())
    })?;
    let output = leave.form(Layout::PLAIN);
    Ok(Some(Built::step(HalfProduct { gemm, numbers, weights, rows: a.len() / k, leave }, reads, output)))
}

impl Step<Cpu> for HalfProduct {
    fn kernel(&self) -> String {
        format!("gemm{}", self.leave.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.gemm.scratch_floats())
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.leave.runs_in_place(read)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (k, n) = (self.gemm.k(), self.gemm.n());
        self.leave.with(io, n, |io, epilogue, out| {
            let rows = (self.rows, bytemuck::cast_slice(io.inputs[0]), k);
            self.gemm.run_typed(io.exec, self.numbers, rows, self.weights.as_slice(), out, n, epilogue);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
