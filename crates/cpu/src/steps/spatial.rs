//! Work on images besides convolution: pools, resizing, transposed convolution. All want the channels last.

use super::epilogue::StepEpilogue;
use super::half;
use super::leave::Stored;
use super::types::is_index;
use super::{Built, Cpu, Io, Site, Step, Work, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::{Result, normalize_axis};
use carafe_kernels::{
    Deconv, DeconvShape, MaxPositions, Places, PoolKind, PoolShape, Resize, ResizeAxis, SpatialPool, TouchingDeconv,
    max_pool_bytes,
};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{ConvolutionBackpropData, GroupConvolutionBackpropData};
use carafe_ops::pooling as pool;
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{AxisPlan, Interpolate, Mode, plan_axis};
use carafe_plan::windows::{attribute, three};
use carafe_plan::{Grid, Layout, Operand, RowStrides, Windows};
use carafe_tensor::ElementType;
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !(3..=5).contains(&site.inputs[0].rank()) {
        return Ok(None);
    }
    if site.before.is_some() {
        return super::separable::build(site);
    }
    if site.inputs[0].ty == ElementType::U8 && site.op.is::<pool::MaxPool>() {
        return Ok(pooled(site));
    }
    if site.inputs[0].ty == ElementType::U8 && site.op.is::<Interpolate>() {
        return Ok(resized(site));
    }
    if !site.inputs[0].is_f32() {
        return Ok(None);
    }
    if let Some(built) = pooled(site).or_else(|| resized(site)) {
        return Ok(Some(built));
    }
    deconvolved(site)
}

const LAST: Layout = Layout::CHANNELS_LAST;

#[derive(Clone, Debug)]
struct PoolStep {
    kernel: SpatialPool,
    channels: usize,
    /// Floats from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    name: &'static str,
    numbers: Stored,
}

impl Step<Cpu> for PoolStep {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn accepts_row_stride(&self, _: Operand, row: usize) -> bool {
        row == self.channels
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.channels), strides.write(0, self.channels)];
        Some(Arc::new(PoolStep { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        match self.numbers {
            Stored::F32 => {
                let (out, io) = io.take_output(0);
                self.kernel.run(io.exec, io.input(0), from, out, to);
            }
            Stored::Half(halves) => {
                let (out, io) = io.take_output(0);
                self.kernel.run_halves(io.exec, halves, (io.input(0), from), (out, to));
            }
            Stored::Bytes(grid) => {
                let (out, io) = io.take_output(0);
                self.kernel.run_bytes(io.exec, (io.inputs[0], from), (grid.scale, grid.zero), (out, to));
            }
        }
        Ok(())
    }
}

/// Largest bytes.
#[derive(Clone, Debug)]
struct BytesPoolStep {
    shape: PoolShape,
    strides: [usize; 2],
}

impl Step<Cpu> for BytesPoolStep {
    fn kernel(&self) -> String {
        "pool_max".into()
    }
    fn accepts_row_stride(&self, _: Operand, row: usize) -> bool {
        row == self.shape.channels
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.shape.channels), strides.write(0, self.shape.channels)];
        Some(Arc::new(BytesPoolStep { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        max_pool_bytes(io.exec, &self.shape, (io.inputs[0], self.strides[0]), (out, self.strides[1]));
        Ok(())
    }
}

fn pooled(site: &Site<'_>) -> Option<Built> {
    let (data, out) = (&site.inputs[0].shape, &site.outputs[0].shape);
    let (windows, exclude) = Windows::of_pool(site.op, data, out)?;
    if !site.epilogue.is_empty() {
        return None;
    }
    let Windows { input: in_spatial, output: out_spatial, kernel, stride, dilation, pad_begin, padded } = windows;
    let kind = match exclude {
        None => PoolKind::Max,
        Some(exclude) if exclude || !padded => PoolKind::Mean,
        Some(_) => PoolKind::MeanOfAll,
    };
    let (batch, channels) = (data[0], data[1]);
    let shape = PoolShape { batch, channels, in_spatial, out_spatial, kernel, stride, dilation, pad_begin };
    let is_u8 = site.inputs[0].ty == ElementType::U8;
    if site.wanted.iter().skip(1).any(|w| *w) {
        return with_places(site, shape).filter(|_| !is_u8);
    }
    // A window without a pixel would give the lowest number of the model's type, or a zero that is none of the grid's.
    let meets = |i: usize| {
        let last = (out_spatial[i] - 1) * stride[i];
        pad_begin[i] <= (kernel[i] - 1) * dilation[i] && last < in_spatial[i] + pad_begin[i]
    };
    let all_meet = (0..3).all(meets);
    if is_u8 {
        let step = BytesPoolStep { shape, strides: [channels; 2] };
        return all_meet.then(|| Built::step(step, vec![(0, LAST)], LAST));
    }
    let kernel = SpatialPool::new(site.cx.isa, site.cx.threads, shape, kind);
    let name = if kind == PoolKind::Max { "pool_max" } else { "pool_mean" };
    // A mean is rounded only where its readers do.
    let rounds = kind == PoolKind::Max || half::preferred(site).is_some();
    let numbers = match Stored::of(&site.inputs[0]) {
        Stored::Half(halves) if rounds => Stored::Half(halves),
        Stored::Bytes(grid) if kind == PoolKind::Mean && all_meet => Stored::Bytes(grid),
        _ => Stored::F32,
    };
    let step = PoolStep { kernel, channels, strides: [channels; 2], name, numbers };
    let read = numbers.form(LAST);
    Some(match numbers {
        Stored::F32 => Built::step(step, vec![(0, read)], LAST),
        Stored::Half(halves) => Built::step(step, vec![(0, read)], read).with_precision(half::type_of(halves)),
        Stored::Bytes(_) => Built::step(step, vec![(0, read)], LAST).with_precision(ElementType::U8),
    })
}

/// The largest number and its place, of planes.
#[derive(Debug)]
struct PositionsStep {
    kernel: MaxPositions,
    index: ElementType,
}

impl Step<Cpu> for PositionsStep {
    fn kernel(&self) -> String {
        "pool_max_places".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let input = io.input(0);
        let [out, positions] = &mut *io.outputs else { return Ok(()) };
        let out = bytemuck::cast_slice_mut(out);
        let positions = match self.index {
            ElementType::I32 => Places::I32(bytemuck::cast_slice_mut(positions)),
            _ => Places::I64(bytemuck::cast_slice_mut(positions)),
        };
        self.kernel.run(io.exec, input, out, positions);
        Ok(())
    }
}

fn with_places(site: &Site<'_>, shape: PoolShape) -> Option<Built> {
    let axis = site.op.get::<pool::MaxPool>()?.axis;
    let (data, index) = (&site.inputs[0].shape, site.outputs.get(1)?.ty);
    let counted: usize = data[normalize_axis(axis, data.len()).ok()?..].iter().product();
    if counted == 0 || !is_index(index) || !MaxPositions::fits(shape.in_spatial) {
        return None;
    }
    let step = PositionsStep { kernel: MaxPositions::new(shape, counted), index };
    let outputs = vec![Layout::PLAIN; 2];
    let reads = vec![(0, Layout::PLAIN)];
    Some(Built::new(Work::Step(Arc::new(step)), reads, outputs))
}

#[derive(Clone, Debug)]
struct ResizeStep {
    kernel: Resize,
    channels: usize,
    strides: [usize; 2],
    /// Of pixels that are bytes.
    grid: Option<Grid>,
}

impl Step<Cpu> for ResizeStep {
    fn kernel(&self) -> String {
        "resize".into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn accepts_row_stride(&self, _: Operand, row: usize) -> bool {
        row == self.channels
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.channels), strides.write(0, self.channels)];
        Some(Arc::new(ResizeStep { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let [from, to] = self.strides;
        match self.grid {
            Some(grid) => self.kernel.run_bytes(io.exec, (io.inputs[0], from), (grid.scale, grid.zero), (out, to)),
            None => self.kernel.run(io.exec, io.input(0), from, out, to),
        }
        Ok(())
    }
}

/// The longest axis that is resized by tables.
const LONGEST: usize = 1 << 24;

fn resized(site: &Site<'_>) -> Option<Built> {
    let i = site.op.get::<Interpolate>()?;
    let unpadded = i.pads_begin.iter().chain(&i.pads_end).all(|p| *p == 0);
    let by_scales = i.shape_calculation_mode == ShapeCalculation::Scales;
    let sampling = (i.mode, i.coordinate_transformation_mode, i.nearest_mode, i.antialias, i.cube_coeff);
    let (target, axes) = (1, 2);
    if !unpadded || !site.epilogue.is_empty() {
        return None;
    }
    let (data, out) = (&site.inputs[0].shape, &site.outputs[0].shape);
    // Tables are as long as the axes; beyond this the result cannot be had anyway, which the evaluation tells.
    if out.iter().any(|n| *n > LONGEST) {
        return None;
    }
    let rank = data.len();
    let axes: Vec<usize> = match site.inputs.get(axes) {
        None => (0..rank).collect(),
        Some(port) => port.ints()?.into_iter().map(|a| normalize_axis(a, rank).ok()).collect::<Option<_>>()?,
    };
    let mut scales: Vec<f32> = data.iter().zip(out).map(|(&f, &t)| t as f32 / f as f32).collect();
    if by_scales {
        let given = site.inputs.get(target)?.floats()?;
        axes.iter().zip(given).for_each(|(&a, s)| scales[a] = s);
    }
    if data[..2] != out[..2] || scales[..2].iter().any(|s| *s != 1.0) {
        return None;
    }
    let (mode, coordinates, nearest, antialias, cube_coeff) = sampling;
    let shrinks = axes.iter().any(|&a| scales[a] < 1.0);
    let widened = antialias && shrinks && mode == Mode::Linear;
    let mut tables = [ResizeAxis::same(1), ResizeAxis::same(1), ResizeAxis::same(1)];
    let ahead = 3 - (rank - 2);
    for axis in 2..rank {
        let (from, to) = (data[axis], out[axis]);
        let plan = AxisPlan { from, to, scale: scales[axis], mode, coordinates, nearest, widened, cube_coeff };
        let listed = axes.contains(&axis);
        tables[ahead + axis - 2] = match listed {
            true => table(&plan_axis(&plan)?),
            false if from == to => ResizeAxis::same(from),
            false => return None,
        };
    }
    let (batch, mut channels) = (data[0], data[1]);
    if site.inputs[0].ty == ElementType::U8 {
        // Whole pixels are copied, four bytes as one float.
        if mode != Mode::Nearest || channels % 4 != 0 {
            return None;
        }
        channels /= 4;
    }
    let kernel = Resize::new(site.cx.isa, batch, channels, three(&data[2..])?, tables);
    // Weights that make one: then the zero of a grid is taken away once.
    let blends = matches!(mode, Mode::Linear | Mode::LinearOnnx) && !kernel.copies();
    let stored = Stored::of(&site.inputs[0]);
    let grid = match stored {
        Stored::Bytes(grid) if blends && site.inputs[0].is_f32() => Some(grid),
        _ => None,
    };
    let step = ResizeStep { kernel, channels, strides: [channels; 2], grid };
    Some(match grid {
        Some(_) => Built::step(step, vec![(0, stored.form(LAST))], LAST).with_precision(ElementType::U8),
        None => Built::step(step, vec![(0, LAST)], LAST),
    })
}

// Every pixel with as many taps; those that are missing weigh nothing.
fn table(taps: &[Vec<(usize, f64)>]) -> ResizeAxis {
    let most = taps.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let (mut index, mut weight) = (vec![], vec![]);
    for pixel in taps {
        let spare = pixel.first().map_or(0, |t| t.0);
        for k in 0..most {
            let (i, w) = pixel.get(k).copied().unwrap_or((spare, 0.0));
            index.push(i as u32);
            weight.push(w as f32);
        }
    }
    ResizeAxis { taps: most, index, weight }
}

#[derive(Clone, Debug)]
struct DeconvStep {
    kernel: Deconv,
    weights: Packed,
    channels: [usize; 2],
    strides: [usize; 2],
    epilogue: StepEpilogue,
}

impl Step<Cpu> for DeconvStep {
    fn kernel(&self) -> String {
        format!("deconv{}", self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(0) => row == self.channels[0],
            Operand::Read(i) => self.epilogue.is_matrix(i) && row == self.channels[1],
            Operand::Write(_) => row == self.channels[1],
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let epilogue = self.epilogue.with_strides(strides);
        let strides = [strides.read(0, self.channels[0]), strides.write(0, self.channels[1])];
        Some(Arc::new(DeconvStep { strides, epilogue, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let (out, io) = io.take_output(0);
        self.epilogue.with(&io, self.channels[1], |epilogue| {
            self.kernel.run(io.exec, io.input(0), from, self.weights.as_slice(), out, to, epilogue);
        });
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct TouchingStep {
    kernel: TouchingDeconv,
    weights: Packed,
    channels: [usize; 2],
    strides: [usize; 2],
    epilogue: StepEpilogue,
}

impl Step<Cpu> for TouchingStep {
    fn kernel(&self) -> String {
        format!("deconv_gemm{}", self.epilogue.name())
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(i) => i == 0 && row == self.channels[0],
            Operand::Write(_) => !self.kernel.is_dense() && row == self.channels[1],
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let strides = [strides.read(0, self.channels[0]), strides.write(0, self.channels[1])];
        Some(Arc::new(TouchingStep { strides, ..self.clone() }))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let (out, io) = io.take_output(0);
        let bias = self.epilogue.bias(&io);
        self.kernel.run(io.exec, (io.input(0), from), self.weights.as_slice(), (out, to), bias);
        Ok(())
    }
}

fn deconvolved(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(shape) = deconv_shape(site) else { return Ok(None) };
    let mut reads = vec![(0, LAST)];
    let Some(epilogue) = StepEpilogue::of(site, 1, LAST, &mut reads) else { return Ok(None) };
    let Some(tensor) = &site.inputs[1].constant else { return Ok(None) };
    let channels = [shape.in_channels, shape.out_channels];
    if let Some(act) = epilogue.light().filter(|_| TouchingDeconv::fits(&shape)) {
        let kernel = TouchingDeconv::new(site.cx.isa, shape, act);
        let form = format!("touching_deconv|{:?}|{}", shape.kernel, kernel.is_dense());
        let weights = site.cx.packed(&form, &[tensor], kernel.packed_floats(), |to| {
            kernel.pack(&floats_of(tensor)?, to);
            tensor.release();
            Ok(())
        })?;
        return Ok(Some(Built::step(
            TouchingStep { kernel, weights, channels, strides: channels, epilogue },
            reads,
            LAST,
        )));
    }
    let kernel = Deconv::new(site.cx.isa, site.cx.threads, shape);
    let form = format!("deconv|{:?}|{}", shape.kernel, shape.groups);
    let weights = site.cx.packed(&form, &[tensor], kernel.packed_floats(), |to| {
        kernel.pack(&floats_of(tensor)?, to);
        tensor.release();
        Ok(())
    })?;
    Ok(Some(Built::step(DeconvStep { kernel, weights, channels, strides: channels, epilogue }, reads, LAST)))
}

/// Sizes of a transposed convolution; `None` for what the kernels do not know.
pub(super) fn deconv_shape(site: &Site<'_>) -> Option<DeconvShape> {
    let op = site.op;
    let (strides, dilations, begin, end, auto_pad, padding, grouped) =
        if let Some(c) = op.get::<ConvolutionBackpropData>() {
            (&c.strides, &c.dilations, &c.pads_begin, &c.pads_end, c.auto_pad, &c.output_padding, false)
        } else {
            let c = op.get::<GroupConvolutionBackpropData>()?;
            (&c.strides, &c.dilations, &c.pads_begin, &c.pads_end, c.auto_pad, &c.output_padding, true)
        };
    let weights = &site.inputs[1];
    if !weights.is_f32() || (weights.constant.is_none() && weights.integers.is_none()) {
        return None;
    }
    let (data, filters, out) = (&site.inputs[0].shape, &site.inputs[1].shape, &site.outputs[0].shape);
    let n = data.len() - 2;
    let explicit = auto_pad == PadType::Explicit;
    let neither = |list: &[i64]| list.iter().all(|p| *p == 0);
    if !(explicit || neither(begin) && neither(end)) {
        return None;
    }
    let mut shape = DeconvShape {
        batch: data[0],
        in_channels: data[1],
        out_channels: out[1],
        in_spatial: three(&data[2..])?,
        out_spatial: three(&out[2..])?,
        kernel: three(&filters[if grouped { 3 } else { 2 }..])?,
        stride: attribute(strides, n, 1)?,
        dilation: attribute(dilations, n, 1)?,
        pad_begin: attribute(begin, n, 0)?,
        groups: if grouped { filters[0] } else { 1 },
    };
    let (mut pad_end, extra) = (attribute(end, n, 0)?, attribute(padding, n, 0)?);
    let whole: [usize; 3] = std::array::from_fn(|i| {
        (shape.in_spatial[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1 + extra[i]
    });
    // The output shape as an input moves the pads; the odd one lies at the other end than forward.
    if site.own_inputs == 3 && matches!(auto_pad, PadType::SameUpper | PadType::SameLower) {
        for i in 3 - n..3 {
            let total = whole[i].saturating_sub(shape.out_spatial[i]);
            let less = total / 2;
            let upper = auto_pad == PadType::SameUpper;
            (shape.pad_begin[i], pad_end[i]) = if upper { (total - less, less) } else { (less, total - less) };
        }
    }
    // The output must be as large as the pads say.
    let fits = (0..3).all(|i| whole[i] == shape.out_spatial[i] + shape.pad_begin[i] + pad_end[i]);
    fits.then_some(shape)
}
