//! Convolutions: by the direct kernel, by Winograd's method where it is quicker, depthwise, and of a planar image with few
//! channels as the first layer has it. Weights must be constants.

use super::epilogue::StepEpilogue;
use super::{Built, Cpu, Io, Port, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::{Op, Result};
use carafe_kernels::{Conv, ConvPlanar, ConvShape, Depthwise, Machine, Winograd, winograd};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_plan::{Layout, Operand, RowStrides};
use std::ops::Range;
use std::sync::Arc;

/// Images of at most this many channels are convolved where they lie.
const FEW: usize = 4;

/// Attributes of both operations.
pub(super) struct Attrs<'a> {
    strides: &'a [i64],
    dilations: &'a [i64],
    begin: &'a [i64],
    end: &'a [i64],
    auto_pad: PadType,
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group {
        return Ok(None);
    }
    if site.before.is_some() {
        return super::separable::build(site);
    }
    let Some((attrs, grouped)) = attrs_of_op(site.op) else { return Ok(None) };
    let (data, filters) = (&site.inputs[0], &site.inputs[1]);
    let Some(tensor) = &filters.constant else { return Ok(None) };
    if !data.is_f32() || !filters.is_f32() {
        return Ok(None);
    }
    let Some(whole) = shape_of([data, filters, &site.outputs[0]], &attrs, grouped) else { return Ok(None) };
    let (shape, kept) = whole.trimmed().unwrap_or((whole, whole.kernel.map(|k| 0..k)));
    let planar = shape.in_channels <= FEW && shape.groups == 1 && data.layout == Layout::PLAIN;
    let wanted = if planar { Layout::PLAIN } else { Layout::CHANNELS_LAST };
    let mut reads = vec![(0, wanted)];
    let Some(epilogue) = StepEpilogue::of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    let (isa, threads) = (site.cx.isa, site.cx.threads);
    let packers = &site.cx.packers;
    let mut form = format!("{:?}x{:?}", shape.kernel, shape.groups);
    if shape != whole {
        form += &format!(" of {kept:?}");
    }
    macro_rules! packed {
        ($name:literal, $kernel:ident, $pack:expr) => {
            site.cx.packed(&format!("{}|{form}", $name), &[tensor], $kernel.packed_floats(), |to| {
                let floats = floats_of(tensor)?;
                match shape == whole {
                    true => $pack(&floats, to),
                    false => $pack(&taps_of(&floats, &whole, &kept), to),
                }
                tensor.release();
                Ok(())
            })?
        };
    }
    let (method, weights) = if planar {
        let k = ConvPlanar::new(isa, threads, shape);
        let w = packed!("conv_planar", k, |data: &[f32], to: &mut [f32]| k.pack(packers.exec().as_ref(), data, to));
        (Method::Planar(k), w)
    } else if Depthwise::fits(&shape) {
        let k = Depthwise::new(isa, threads, shape);
        let w = packed!("depthwise", k, |data: &[f32], to: &mut [f32]| k.pack(data, to));
        (Method::Depthwise(k), w)
    } else if !site.cx.strict_f32 && Winograd::fits(&shape) && winograd::worthwhile(&shape, threads, Machine::here()) {
        let k = Winograd::new(isa, threads, shape);
        let w =
            packed!("winograd 11/16 3/2", k, |data: &[f32], to: &mut [f32]| k.pack(packers.exec().as_ref(), data, to));
        (Method::Winograd(k), w)
    } else {
        let k = Conv::new(isa, threads, shape);
        let w = packed!("conv", k, |data: &[f32], to: &mut [f32]| k.pack(packers.exec().as_ref(), data, to));
        (Method::Direct(k), w)
    };
    let strides = [shape.in_channels, shape.out_channels];
    let step = ConvStep { method, weights, shape, strides, epilogue };
    Ok(Some(Built::step(step, reads, Layout::CHANNELS_LAST)))
}

// The filters with these taps alone.
pub(super) fn taps_of(floats: &[f32], whole: &ConvShape, kept: &[Range<usize>; 3]) -> Vec<f32> {
    let [_, height, width] = whole.kernel;
    let mut out = vec![];
    for filter in floats.chunks_exact(whole.taps()) {
        for z in kept[0].clone() {
            for y in kept[1].clone() {
                let row = (z * height + y) * width;
                out.extend_from_slice(&filter[row + kept[2].start..row + kept[2].end]);
            }
        }
    }
    out
}

/// Attributes of a convolution, and whether it has groups.
pub(super) fn attrs_of_op(op: &dyn Op) -> Option<(Attrs<'_>, bool)> {
    if let Some(c) = op.get::<Convolution>() {
        return Some((attrs_of(&c.strides, &c.dilations, &c.pads_begin, &c.pads_end, c.auto_pad), false));
    }
    let c = op.get::<GroupConvolution>()?;
    Some((attrs_of(&c.strides, &c.dilations, &c.pads_begin, &c.pads_end, c.auto_pad), true))
}

pub(super) fn attrs_of<'a>(
    strides: &'a [i64],
    dilations: &'a [i64],
    begin: &'a [i64],
    end: &'a [i64],
    auto_pad: PadType,
) -> Attrs<'a> {
    Attrs { strides, dilations, begin, end, auto_pad }
}

/// Sizes in depth, height, width; `None` for what the kernels do not know, such as negative pads.
pub(super) fn shape_of(ports: [&Port; 3], attrs: &Attrs<'_>, grouped: bool) -> Option<ConvShape> {
    let [data, filters, out] = ports.map(|p| &p.shape);
    let n = data.len().checked_sub(2).filter(|n| (1..=3).contains(n))?;
    let lead = if grouped { 3 } else { 2 };
    let mut shape = ConvShape {
        batch: data[0],
        in_spatial: [1; 3],
        in_channels: data[1],
        out_channels: out[1],
        kernel: [1; 3],
        stride: [1; 3],
        dilation: [1; 3],
        pad_begin: [0; 3],
        pad_end: [0; 3],
        groups: if grouped { filters[0] } else { 1 },
    };
    for i in 0..n {
        let at = 3 - n + i;
        let value = |list: &[i64], neutral: i64| usize::try_from(list.get(i).copied().unwrap_or(neutral)).ok();
        let (stride, dilation) = (value(attrs.strides, 1)?, value(attrs.dilations, 1)?);
        let (size, kernel, result) = (data[2 + i], filters[lead + i], out[2 + i]);
        // What the windows reach over: more than the data means padding.
        let reach = (result.checked_sub(1)? * stride) + (kernel.checked_sub(1)? * dilation) + 1;
        let begin = match attrs.auto_pad {
            PadType::Explicit => value(attrs.begin, 0)?,
            PadType::Valid => 0,
            PadType::SameUpper => reach.saturating_sub(size) / 2,
            PadType::SameLower => reach.saturating_sub(size).div_ceil(2),
        };
        if attrs.auto_pad == PadType::Explicit && value(attrs.end, 0).is_none() {
            return None;
        }
        shape.in_spatial[at] = size;
        shape.kernel[at] = kernel;
        shape.stride[at] = stride;
        shape.dilation[at] = dilation;
        shape.pad_begin[at] = begin;
        shape.pad_end[at] = reach.saturating_sub(size + begin);
    }
    let out_spatial: Vec<usize> = shape.out_spatial()[3 - n..].to_vec();
    (out_spatial == out[2..]).then_some(shape)
}

#[derive(Clone, Debug)]
enum Method {
    Direct(Conv),
    Planar(ConvPlanar),
    Depthwise(Depthwise),
    Winograd(Winograd),
}

#[derive(Clone, Debug)]
struct ConvStep {
    method: Method,
    weights: Packed,
    shape: ConvShape,
    /// Floats from pixel to pixel of the input and of the output.
    strides: [usize; 2],
    epilogue: StepEpilogue,
}

impl Step<Cpu> for ConvStep {
    fn kernel(&self) -> String {
        let method = match &self.method {
            Method::Direct(_) if self.shape.is_pointwise() => "gemm",
            Method::Direct(_) => "direct",
            Method::Planar(_) => "planar",
            Method::Depthwise(_) => "depthwise",
            Method::Winograd(_) => "winograd",
        };
        let kernel = self.shape.kernel.map(|k| k.to_string()).join("x");
        format!("conv_{method}_{}{}", kernel.trim_start_matches("1x"), self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(match &self.method {
            Method::Direct(k) => k.scratch_floats(),
            Method::Planar(k) => k.scratch_floats(),
            Method::Depthwise(k) => k.scratch_floats(),
            Method::Winograd(k) => k.scratch_floats(),
        })
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        match operand {
            Operand::Read(0) => !matches!(self.method, Method::Planar(_)) && row == self.shape.in_channels,
            Operand::Read(i) => self.epilogue.is_matrix(i) && row == self.shape.out_channels,
            Operand::Write(_) => row == self.shape.out_channels,
        }
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let mut step = self.clone();
        step.strides = [strides.read(0, self.shape.in_channels), strides.write(0, self.shape.out_channels)];
        if let Method::Direct(conv) = step.method {
            step.method = Method::Direct(conv.with_in_stride(step.strides[0]));
        }
        step.epilogue = self.epilogue.with_strides(strides);
        Some(Arc::new(step))
    }
    fn runs_in_place(&self, read: usize) -> bool {
        let Method::Direct(conv) = &self.method else { return false };
        self.epilogue.runs_in_place(read, |epilogue| conv.adds_over(epilogue))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let [from, to] = self.strides;
        let (out, io) = io.take_output(0);
        let (exec, input, weights) = (io.exec, io.input(0), self.weights.as_slice());
        self.epilogue.with(&io, self.shape.out_channels, |epilogue| match &self.method {
            Method::Direct(k) => k.run(exec, input, weights, out, to, epilogue),
            Method::Planar(k) => k.run(exec, input, weights, out, to, epilogue),
            Method::Depthwise(k) => k.run(exec, input, from, weights, out, to, epilogue),
            Method::Winograd(k) => k.run(exec, input, from, weights, out, to, epilogue),
        });
        Ok(())
    }
}
