//! Convolutions and products of integers: data on a grid, weights stored as integers. Sums are exact; scale, bias, roundings to
//! other grids, sums and functions are applied to them while they are near, and what lies on a grid again is stored as bytes.
//! What only moves elements moves bytes.

use super::bytes::{self, is_bytes};
use super::conv::{attrs_of_op, shape_of};
use super::leave::Leave;
use super::quantized_deconv;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use crate::weights::Packed;
use carafe_graph::Result;
use carafe_kernels::{
    BytesEpilogue, Conv, ConvShape, DepthwiseBytes, Gemm, LONGEST_INTEGER_SUM, Numbers, Quantizer, dequantize,
    quantize, quantize_planes, weave_planes,
};
use carafe_ops::convolution::ConvolutionBackpropData;
use carafe_ops::linear::MatMul;
use carafe_passes::fuse::{keeps_steps, passes_on};
use carafe_plan::elementwise::is_scalar;
use carafe_plan::{Form, Grid, Integers, Layout, Operand, RowStrides};
use carafe_tensor::ElementType;
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.before.is_some() {
        return Ok(None);
    }
    if let Some(built) = bytes::product(site) {
        return Ok(Some(built));
    }
    if site.reordered() {
        return Ok(None);
    }
    if site.group {
        return bytes::group(site);
    }
    if let Some(built) = moved(site)? {
        return Ok(Some(built));
    }
    if let Some(built) = bytes::mean(site) {
        return Ok(Some(built));
    }
    let Some((grid, weights)) = site.inputs.first().and_then(|p| p.grid).zip(integers(site)) else { return Ok(None) };
    if !Numbers::U8I8.is_fast(site.cx.isa) {
        return Ok(None);
    }
    match site.op.get::<MatMul>() {
        Some(op) => product(site, op, grid, weights),
        None if site.op.is::<ConvolutionBackpropData>() => quantized_deconv::build(site, grid, weights),
        None => convolution(site, grid, weights),
    }
}

fn integers<'a>(site: &'a Site<'_>) -> Option<&'a Integers> {
    site.inputs.get(1)?.integers.as_ref()
}

/// A step that quantizes or dequantizes.
pub(crate) fn between(from: ElementType, to: ElementType, grid: Grid) -> Option<Arc<dyn Step<Cpu>>> {
    match (from, to) {
        (ElementType::F32, ElementType::U8) => Some(Arc::new(Quantized(quantizer_of(grid)))),
        (ElementType::U8, ElementType::F32) => Some(Arc::new(Dequantized(grid))),
        _ => None,
    }
}

// Numbers that lie on the grid already.
pub(super) fn quantizer_of(grid: Grid) -> Quantizer {
    let zero = f32::from(grid.zero);
    Quantizer { inverse: 1.0 / grid.scale, shift: 0.0, low: -zero, high: 255.0 - zero, zero: grid.zero.into() }
}

#[derive(Debug)]
struct Quantized(Quantizer);

impl Step<Cpu> for Quantized {
    fn kernel(&self) -> String {
        "quantize".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        quantize(io.exec, &self.0, io.input(0), out);
        Ok(())
    }
}

#[derive(Debug)]
struct Dequantized(Grid);

impl Step<Cpu> for Dequantized {
    fn kernel(&self) -> String {
        "dequantize".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        dequantize(io.exec, self.0.scale, self.0.zero, io.input(0), out);
        Ok(())
    }
}

// What only moves elements, as if the model said u8.
fn moved(site: &Site<'_>) -> Result<Option<Built>> {
    let moves = keeps_steps(site.op);
    let grid = site.outputs.first().and_then(|p| p.grid);
    let is_moved = |(i, p): &(usize, &Port)| p.is_f32() && passes_on(site.op, *i);
    let moved: Vec<bool> = site.inputs.iter().enumerate().map(|port| is_moved(&port)).collect();
    let mut floats = site.inputs.iter().zip(&moved).filter(|(_, moved)| **moved);
    let floats_are_bytes = floats.all(|(p, _)| is_bytes(p) && p.grid == grid);
    if !moves || grid.is_none() || !site.epilogue.is_empty() || !floats_are_bytes {
        return Ok(None);
    }
    let byte = |p: &Port| Port { ty: ElementType::U8, stored: ElementType::U8, grid: None, ..p.clone() };
    let inputs = site.inputs.iter().zip(&moved).map(|(p, moved)| if *moved { byte(p) } else { p.clone() }).collect();
    let outputs = site.outputs.iter().map(|p| if p.is_f32() { byte(p) } else { p.clone() }).collect();
    let wanted = site.wanted.clone();
    let Some(mut built) = super::build_floats(&Site { inputs, outputs, wanted, ..*site })? else { return Ok(None) };
    for (i, form) in &mut built.reads {
        if moved[*i] {
            form.ty = Some(ElementType::U8);
        }
    }
    for (port, form) in site.outputs.iter().zip(&mut built.outputs) {
        if port.is_f32() {
            form.ty = Some(ElementType::U8);
        }
    }
    Ok(Some(built.with_precision(ElementType::U8)))
}

// Scale and bias of each column: what the zero point of the data adds to every sum is taken away again.
fn columns(grid: Grid, scale: &[f32], sums: &[i64]) -> (Vec<f32>, Vec<f32>) {
    let at = |j: usize| grid.scale * scale[if scale.len() == 1 { 0 } else { j }];
    let taken = |j: usize| (-f64::from(grid.zero) * sums[j] as f64 * f64::from(at(j))) as f32;
    ((0..sums.len()).map(at).collect(), (0..sums.len()).map(taken).collect())
}

#[derive(Clone, Debug)]
struct IntegerConv {
    conv: Conv,
    weights: Packed,
    /// Bytes of a pixel of the input.
    channels: usize,
    out_stride: usize,
    leave: Leave,
}

fn convolution(site: &Site<'_>, grid: Grid, weights: &Integers) -> Result<Option<Built>> {
    let Some((attrs, grouped)) = attrs_of_op(site.op) else { return Ok(None) };
    let ports = [&site.inputs[0], &site.inputs[1], &site.outputs[0]];
    let Some(shape) = shape_of(ports, &attrs, grouped) else { return Ok(None) };
    let each = shape.in_channels / shape.groups * shape.taps();
    let channels = shape.out_channels;
    let lead: usize = weights.scale.shape()[..1 + usize::from(grouped)].iter().product();
    let scaled = weights.scale.len() == 1 || (lead == channels && weights.scale.len() == channels);
    if each > LONGEST_INTEGER_SUM || !scaled {
        return Ok(None);
    }
    let (isa, threads) = (site.cx.isa, site.cx.threads);
    let data = weights.data.to_vec::<i8>()?;
    let sums: Vec<i64> = data.chunks(each).map(|f| f.iter().map(|w| i64::from(*w)).sum()).collect();
    let (scale, bias) = columns(grid, &weights.scale.to_vec::<f32>()?, &sums);
    let port = &site.inputs[0];
    // Pixels of fewer than four bytes are no cells.
    let whole_cells = port.layout != Layout::PLAIN && shape.in_channels.is_multiple_of(4);
    let planar = shape.in_channels <= 4 && shape.groups == 1 && !whole_cells;
    let read = match planar {
        true => Form { layout: Layout::PLAIN, ty: is_bytes(port).then_some(ElementType::U8) },
        false => Form::typed(Layout::CHANNELS_LAST, ElementType::U8),
    };
    let mut reads = vec![(0, read)];
    let Some(leave) = Leave::of(site, 1, Layout::CHANNELS_LAST, scale, bias, &mut reads) else { return Ok(None) };
    if let Some(conv) = DepthwiseBytes::new(isa, shape, grid.zero) {
        return depthwise(site, conv, shape, weights, leave, reads);
    }
    if planar {
        return of_planes(site, shape, grid, weights, leave, reads);
    }
    let Some(conv) = Conv::of_cells(isa, threads, shape, Numbers::U8I8, grid.zero) else { return Ok(None) };
    let form = format!("conv_i8|{:?}x{:?}", shape.kernel, shape.groups);
    let packed = site.cx.packed(&form, &[&weights.data], conv.packed_floats(), |to: &mut [f32]| {
        conv.pack_i8(&data, to);
        Ok(())
    })?;
    let output = leave.form(Layout::CHANNELS_LAST);
    let step = IntegerConv { conv, weights: packed, channels: shape.in_channels, out_stride: channels, leave };
    Ok(Some(Built::step(step, reads, output).with_precision(ElementType::I8)))
}

impl Step<Cpu> for IntegerConv {
    fn kernel(&self) -> String {
        let shape = self.conv.shape();
        let method = if shape.is_pointwise() { "gemm" } else { "direct" };
        let kernel = shape.kernel.map(|k| k.to_string()).join("x");
        format!("conv_{method}_{}{}", kernel.trim_start_matches("1x"), self.leave.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.conv.scratch_floats())
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(0) => false,
            Operand::Read(i) => self.leave.is_matrix(i) && row == self.conv.shape().out_channels,
            Operand::Write(_) => row == self.conv.shape().out_channels,
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let mut step = self.clone();
        step.out_stride = strides.write(0, self.conv.shape().out_channels);
        step.leave.strides = RowStrides { reads: strides.reads.clone(), writes: vec![] };
        Some(Arc::new(step))
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.leave.runs_in_place(read)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        debug_assert!(self.channels.is_multiple_of(4));
        self.leave.with(io, self.conv.shape().out_channels, |io, epilogue, out| {
            let cells = bytemuck::cast_slice(io.inputs[0]);
            self.conv.run_typed(io.exec, cells, self.weights.as_slice(), out, self.out_stride, epilogue);
        });
        Ok(())
    }
}

/// Each channel by itself.
#[derive(Clone, Debug)]
struct IntegerDepthwise {
    conv: DepthwiseBytes,
    weights: Packed,
    kernel: [usize; 3],
    channels: usize,
    /// Bytes from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    epilogue: BytesEpilogue,
}

fn depthwise(
    site: &Site<'_>,
    conv: DepthwiseBytes,
    shape: ConvShape,
    weights: &Integers,
    leave: Leave,
    reads: Vec<(usize, Form)>,
) -> Result<Option<Built>> {
    let Some(Quantizer { low, high, zero, .. }) = leave.to.filter(|_| leave.is_in_steps()) else { return Ok(None) };
    if !conv.is_fast() {
        return Ok(None);
    }
    let data = weights.data.to_vec::<i8>()?;
    let form = format!("depthwise_i8|{:?}", shape.kernel);
    let packed = site.cx.packed(&form, &[&weights.data], conv.packed_bytes(), |to: &mut [i8]| {
        conv.pack(&data, to);
        Ok(())
    })?;
    let (kernel, channels) = (shape.kernel, shape.in_channels);
    let epilogue = BytesEpilogue::new(leave.scale, leave.bias, [low, high], zero);
    let step = IntegerDepthwise { conv, weights: packed, kernel, channels, strides: [channels; 2], epilogue };
    let output = Form::typed(Layout::CHANNELS_LAST, ElementType::U8);
    Ok(Some(Built::step(step, reads, output).with_precision(ElementType::I8)))
}

impl Step<Cpu> for IntegerDepthwise {
    fn kernel(&self) -> String {
        let kernel = self.kernel.map(|k| k.to_string()).join("x");
        format!("conv_depthwise_{}+quantize", kernel.trim_start_matches("1x"))
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        matches!(operand, Operand::Read(0) | Operand::Write(_)) && row == self.channels
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.channels), strides.write(0, self.channels)];
        Some(Arc::new(IntegerDepthwise { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let (out, io) = io.take_output(0);
        self.conv.run(io.exec, (io.inputs[0], from), self.weights.as_slice(), (out, to), &self.epilogue);
        Ok(())
    }
}

/// The first layer: planes become pixels of four bytes in the step's own memory.
#[derive(Debug)]
struct OfPlanes {
    conv: IntegerConv,
    /// Of planes of floats; others are bytes already.
    quantizer: Option<Quantizer>,
    /// Images, channels, pixels of a plane.
    planes: [usize; 3],
}

fn of_planes(
    site: &Site<'_>,
    shape: ConvShape,
    grid: Grid,
    weights: &Integers,
    leave: Leave,
    reads: Vec<(usize, Form)>,
) -> Result<Option<Built>> {
    let (isa, threads) = (site.cx.isa, site.cx.threads);
    let four = ConvShape { in_channels: 4, ..shape };
    let Some(conv) = Conv::of_cells(isa, threads, four, Numbers::U8I8, grid.zero) else { return Ok(None) };
    let data = weights.data.to_vec::<i8>()?;
    let form = format!("conv_planes_i8|{:?}", shape.kernel);
    let (taps, channels) = (shape.taps(), shape.in_channels);
    let packed = site.cx.packed(&form, &[&weights.data], conv.packed_floats(), |to: &mut [f32]| {
        let mut filled = vec![0i8; shape.out_channels * 4 * taps];
        for (filter, to) in data.chunks(channels * taps).zip(filled.chunks_mut(4 * taps)) {
            to[..channels * taps].copy_from_slice(filter);
        }
        conv.pack_i8(&filled, to);
        Ok(())
    })?;
    let (output, pixels) = (leave.form(Layout::CHANNELS_LAST), shape.in_pixels());
    let planes = [shape.batch, channels, pixels / shape.batch.max(1)];
    let conv = IntegerConv { conv, weights: packed, channels: 4, out_stride: shape.out_channels, leave };
    let quantizer = (!is_bytes(&site.inputs[0])).then(|| quantizer_of(grid));
    let step = OfPlanes { conv, quantizer, planes };
    let built = Built::step(step, reads, output).with_precision(ElementType::I8);
    Ok(Some(built.with_workspace(pixels * 4)))
}

impl Step<Cpu> for OfPlanes {
    fn kernel(&self) -> String {
        self.conv.kernel().replacen("direct", "planar", 1)
    }
    fn scratch_bytes(&self) -> usize {
        self.conv.scratch_bytes()
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.conv.leave.runs_in_place(read)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        match &self.quantizer {
            Some(quantizer) => quantize_planes(io.exec, quantizer, io.input(0), self.planes, io.workspace),
            None => weave_planes(io.exec, io.inputs[0], self.planes, io.workspace),
        }
        let IntegerConv { conv, weights, out_stride, leave, .. } = &self.conv;
        leave.with(io, conv.shape().out_channels, |io, epilogue, out| {
            let cells = bytemuck::cast_slice(io.workspace);
            conv.run_typed(io.exec, cells, weights.as_slice(), out, *out_stride, epilogue);
        });
        Ok(())
    }
}

#[derive(Debug)]
struct IntegerProduct {
    gemm: Gemm,
    weights: Packed,
    rows: usize,
    leave: Leave,
}

fn product(site: &Site<'_>, op: &MatMul, grid: Grid, weights: &Integers) -> Result<Option<Built>> {
    let (a, b) = (&site.inputs[0], &weights.data);
    let rank = b.shape().len();
    if rank < 2 || a.rank() < 2 || op.transpose_a || !is_scalar(&b.shape()[..rank - 2]) {
        return Ok(None);
    }
    let (last, before) = (b.shape()[rank - 1], b.shape()[rank - 2]);
    let (k, n) = if op.transpose_b { (last, before) } else { (before, last) };
    let axis = if op.transpose_b { rank - 2 } else { rank - 1 };
    let scaled = weights.scale.len() == 1 || (weights.scale.shape()[axis] == n && weights.scale.len() == n);
    if k == 0 || k > LONGEST_INTEGER_SUM || !scaled {
        return Ok(None);
    }
    let Some(gemm) = Gemm::of_cells(site.cx.isa, Numbers::U8I8, n, k) else { return Ok(None) };
    let data = b.to_vec::<i8>()?;
    let mut sums = vec![0i64; n];
    for (i, w) in data.iter().enumerate() {
        sums[if op.transpose_b { i / k } else { i % n }] += i64::from(*w);
    }
    let (scale, bias) = columns(grid, &weights.scale.to_vec::<f32>()?, &sums);
    let mut reads = vec![(0, Form::typed(Layout::PLAIN, ElementType::U8))];
    let out = &site.outputs[0];
    let Some(leave) = Leave::of(site, out.rank() - 1, Layout::PLAIN, scale, bias, &mut reads) else { return Ok(None) };
    let form = format!("gemm_i8|{k}x{n}|{}", op.transpose_b);
    let packed = site.cx.packed(&form, &[b], gemm.packed_floats(), |to: &mut [f32]| {
        gemm.pack_i8(&data, op.transpose_b, to);
        Ok(())
    })?;
    let output = leave.form(Layout::PLAIN);
    let step = IntegerProduct { gemm, weights: packed, rows: a.len() / k, leave };
    Ok(Some(Built::step(step, reads, output).with_precision(ElementType::I8)))
}

impl Step<Cpu> for IntegerProduct {
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
            self.gemm.run_typed(io.exec, Numbers::U8I8, rows, self.weights.as_slice(), out, n, epilogue);
        });
        Ok(())
    }
}
