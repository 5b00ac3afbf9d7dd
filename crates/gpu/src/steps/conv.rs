//! Convolutions, forward and transposed, as products over the windows of an image that lies with the channels last; depthwise
//! ones channel by channel. Constant filters are packed once, computed ones in each run.

use super::ending::{Ending, bytes_of};
use super::movement::size_of;
use super::product::{Image, Left, Product, Right};
use super::view::copy;
use super::{Built, Port, Site};
use crate::launch::{Arg, Launches};
use crate::machine::ALIGNMENT;
use carafe_graph::{Op, Result};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData};
use carafe_plan::{Layout, View};
use carafe_tensor::Tensor;

/// Images of at most this many channels are convolved as they lie.
const FEW: usize = 4;
/// Rows of packed filters are multiples of so many elements.
const PADDED: usize = 8;

/// Sizes of a convolution in depth, height, width.
#[derive(Clone, Copy, Debug)]
struct Shape {
    batch: usize,
    channels: usize,
    out_channels: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    pad: [usize; 3],
    groups: usize,
    backward: bool,
}

/// Attributes of all four operations.
struct Attrs<'a> {
    strides: &'a [i64],
    dilations: &'a [i64],
    begin: &'a [i64],
    end: &'a [i64],
    auto_pad: PadType,
    /// Of a transposed convolution, elements behind each axis.
    extra: Option<&'a [i64]>,
    grouped: bool,
}

impl<'a> Attrs<'a> {
    fn of(op: &'a dyn Op) -> Option<Attrs<'a>> {
        macro_rules! attrs {
            ($c:expr, $extra:expr, $grouped:expr) => {
                Attrs {
                    strides: &$c.strides,
                    dilations: &$c.dilations,
                    begin: &$c.pads_begin,
                    end: &$c.pads_end,
                    auto_pad: $c.auto_pad,
                    extra: $extra,
                    grouped: $grouped,
                }
            };
        }
        if let Some(c) = op.get::<Convolution>() {
            return Some(attrs!(c, None, false));
        }
        if let Some(c) = op.get::<GroupConvolution>() {
            return Some(attrs!(c, None, true));
        }
        if let Some(c) = op.get::<ConvolutionBackpropData>() {
            return Some(attrs!(c, Some(c.output_padding.as_slice()), false));
        }
        let c = op.get::<GroupConvolutionBackpropData>()?;
        Some(attrs!(c, Some(c.output_padding.as_slice()), true))
    }
}

fn number(list: &[i64], i: usize, neutral: i64) -> Option<usize> {
    usize::try_from(list.get(i).copied().unwrap_or(neutral)).ok()
}

// Sizes; `None` for what the kernels do not know, such as negative pads.
fn shape_of(site: &Site<'_>, attrs: &Attrs<'_>) -> Option<Shape> {
    let [data, filters, out] = [&site.inputs[0].shape, &site.inputs[1].shape, &site.outputs[0].shape];
    let n = data.len().checked_sub(2).filter(|n| (1..=3).contains(n))?;
    let lead = if attrs.grouped { 3 } else { 2 };
    let mut shape = Shape {
        batch: data[0],
        channels: data[1],
        out_channels: out[1],
        input: [1; 3],
        output: [1; 3],
        kernel: [1; 3],
        stride: [1; 3],
        dilation: [1; 3],
        pad: [0; 3],
        groups: if attrs.grouped { filters[0] } else { 1 },
        backward: attrs.extra.is_some(),
    };
    for i in 0..n {
        let at = 3 - n + i;
        let (stride, dilation) = (number(attrs.strides, i, 1)?, number(attrs.dilations, i, 1)?);
        let (size, kernel, result) = (data[2 + i], filters[lead + i], out[2 + i]);
        if size == 0 || kernel == 0 || result == 0 {
            return None;
        }
        // The image that windows go over; it is the result of a transposed convolution.
        let (windows, image) = if shape.backward { (size, result) } else { (result, size) };
        let reach = (windows - 1) * stride + (kernel - 1) * dilation + 1;
        let extra = attrs.extra.map_or(Some(0), |e| number(e, i, 0))?;
        shape.pad[at] = match attrs.auto_pad {
            PadType::Explicit => number(attrs.begin, i, 0)?,
            // Pads of an asked-for result: the odd one is at the other end than forward.
            PadType::SameUpper | PadType::SameLower if shape.backward => {
                let total = if site.own_inputs > 2 { (reach + extra).saturating_sub(image) } else { 0 };
                let upper = attrs.auto_pad == PadType::SameUpper;
                if upper { total - total / 2 } else { total / 2 }
            }
            PadType::Valid => 0,
            PadType::SameUpper => reach.saturating_sub(image) / 2,
            PadType::SameLower => reach.saturating_sub(image).div_ceil(2),
        };
        if attrs.auto_pad == PadType::Explicit && number(attrs.end, i, 0).is_none() {
            return None;
        }
        shape.input[at] = size;
        shape.output[at] = result;
        shape.kernel[at] = kernel;
        shape.stride[at] = stride;
        shape.dilation[at] = dilation;
    }
    let fits = shape.groups > 0
        && shape.batch > 0
        && shape.channels > 0
        && shape.out_channels > 0
        && shape.channels.is_multiple_of(shape.groups)
        && shape.out_channels.is_multiple_of(shape.groups);
    fits.then_some(shape)
}

impl Shape {
    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
    fn points(&self) -> usize {
        self.batch * self.output.iter().product::<usize>()
    }
    fn is_pointwise(&self) -> bool {
        let ones = [1; 3];
        self.taps() == 1 && self.stride == ones && self.pad == [0; 3] && self.input == self.output && self.groups == 1
    }
    // Windows over so many channels of a value that lies as `layout` says.
    fn image(&self, layout: Layout, channels: usize) -> Image {
        let [d, h, w] = self.input;
        let (point, channel) = if layout == Layout::CHANNELS_LAST { (self.channels, 1) } else { (1, d * h * w) };
        let steps = [d * h * w * self.channels, h * w * point, w * point, point];
        let lists = [self.input, self.output, self.stride, self.pad];
        let mut numbers = [0; 16];
        let all = lists.iter().flatten().chain(&steps);
        numbers.iter_mut().zip(all).for_each(|(to, &n)| *to = n as i32);
        let mut taps = vec![];
        let sign = if self.backward { -1 } else { 1 };
        for z in 0..self.kernel[0] {
            for y in 0..self.kernel[1] {
                for x in 0..self.kernel[2] {
                    let at = [z * self.dilation[0], y * self.dilation[1], x * self.dilation[2]];
                    let first = if self.backward { 0 } else { at[0] * steps[1] + at[1] * steps[2] + at[2] * steps[3] };
                    let [z, y, x] = at.map(|p| sign * p as i32);
                    taps.extend((0..channels).map(|c| [(first + c * channel) as i32, z, y, x]));
                }
            }
        }
        Image { numbers, taps, dense: if channel == 1 { channels } else { 1 }, backward: self.backward }
    }
    // Filters as they lie, in the order of `matrices`.
    fn view(&self) -> View {
        let (outs, ins) = (self.out_channels / self.groups, self.channels / self.groups);
        match self.backward {
            true => View::whole(&[self.groups, ins, outs, self.taps()]).permuted(&[0, 3, 1, 2]),
            false => View::whole(&[self.groups, outs, ins, self.taps()]).permuted(&[0, 3, 2, 1]),
        }
    }
    // Where a filter's element lies: of a group, result, channel and tap.
    fn filter(&self, group: usize, o: usize, c: usize, tap: usize) -> usize {
        let (outs, ins) = (self.out_channels / self.groups, self.channels / self.groups);
        let (first, second, inner) = if self.backward { (c, o, outs) } else { (o, c, ins) };
        let rows = if self.backward { ins } else { outs };
        ((group * rows + first) * inner + second) * self.taps() + tap
    }
}

// Filters as one matrix for each group: taps and channels x results, rows filled up with zeros.
fn matrices(shape: &Shape, tensor: &Tensor, stride: usize) -> Result<Vec<f32>> {
    let floats = tensor.to_vec::<f32>()?;
    let (outs, ins) = (shape.out_channels / shape.groups, shape.channels / shape.groups);
    let mut packed = vec![0.0; shape.groups * shape.taps() * ins * stride];
    let mut rows = packed.chunks_exact_mut(stride);
    for group in 0..shape.groups {
        for tap in 0..shape.taps() {
            for c in 0..ins {
                if let Some(row) = rows.next() {
                    row[..outs].iter_mut().enumerate().for_each(|(o, x)| *x = floats[shape.filter(group, o, c, tap)]);
                }
            }
        }
    }
    Ok(packed)
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(attrs) = Attrs::of(site.op).filter(|_| !site.group && site.before.is_none()) else { return Ok(None) };
    let (data, filters, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    if !data.is_f32() || !filters.is_f32() {
        return Ok(None);
    }
    let Some(shape) = shape_of(site, &attrs) else { return Ok(None) };
    let last = Layout::CHANNELS_LAST;
    let planar = shape.channels <= FEW && shape.groups == 1 && data.layout == Layout::PLAIN;
    let layout = if planar { Layout::PLAIN } else { last };
    let mut reads = vec![(0, cx.form(data, layout))];
    let Some(ending) = Ending::of(site, 1, last, &mut reads)? else { return Ok(None) };
    let kind = if shape.backward { "deconv" } else { "conv" };
    let size = shape.kernel.map(|k| k.to_string()).join("x");
    let name = format!("{kind}_{}", size.trim_start_matches("1x"));
    let form = format!("{kind} {:?} {} {}", shape.kernel, shape.groups, attrs.grouped);
    let output = cx.form(&site.outputs[0], last);
    let (outs, ins) = (shape.out_channels / shape.groups, shape.channels / shape.groups);
    if let (Some(tensor), 1, true) = (&filters.constant, ins, shape.groups > 1) {
        let weights = cx.packed(&format!("{form} depthwise"), &[tensor], || {
            let floats = tensor.to_vec::<f32>()?;
            let at = |tap: usize, o: usize| floats[shape.filter(o / outs, o % outs, 0, tap)];
            let rows = (0..shape.taps()).flat_map(|t| (0..shape.out_channels).map(move |o| (t, o)));
            Ok(rows.flat_map(|(t, o)| at(t, o).to_ne_bytes()).collect())
        })?;
        let operands = [Arg::Read(0), weights.into(), Arg::Write(0)];
        let sizes = [shape.points(), shape.out_channels, outs];
        let launch = shape.image(last, 1).depthwise(cx, operands, sizes, &ending)?;
        let name = format!("{name}_depthwise{}", ending.name);
        return Ok(Some(Launches::new(name, vec![launch]).built(reads, [output])));
    }
    let deep = shape.taps() * ins;
    let mut launches = vec![];
    let (stride, weights, own) = match &filters.constant {
        Some(tensor) => {
            let stride = outs.next_multiple_of(PADDED);
            let buffer = cx.packed(&format!("{form} {stride} {}", cx.half), &[tensor], || {
                Ok(bytes_of(cx, &matrices(&shape, tensor, stride)?))
            })?;
            (stride, buffer.into(), 0)
        }
        // Computed filters are put into order in the workspace.
        None => {
            reads.push((1, cx.form(filters, Layout::PLAIN)));
            let bytes = filters.len() * size_of(cx, filters);
            let to = Arg::Workspace(0, bytes);
            let view = shape.view();
            let whole = View::whole(&view.dims);
            launches.push(copy(cx, &view, &whole, size_of(cx, filters), Arg::Read(reads.len() - 1), to.clone())?);
            (outs, to, bytes.next_multiple_of(ALIGNMENT))
        }
    };
    let left = match shape.is_pointwise() && layout == last {
        true => Left::Rows(shape.channels),
        false => Left::Image(shape.image(layout, ins)),
    };
    let first = |g: usize| [g * ins, g * deep * stride, g * outs, g * outs].map(|n| n as i32);
    let product = Product {
        rows: shape.points(),
        columns: outs,
        deep,
        left,
        right: Right { stride, transposed: false, padded: own == 0 },
        out_stride: shape.out_channels,
        offsets: (0..shape.groups).map(first).collect(),
        largest: site.inputs.iter().chain(&site.outputs).map(Port::len).max().unwrap_or(0),
    };
    let work = product.launches_from(cx, [Arg::Read(0), weights, Arg::Write(0)], &ending, own)?;
    launches.extend(work.launches);
    let step = Launches::new(format!("{name}{}", work.name), launches);
    Ok(Some(step.built(reads, [output]).with_workspace(own + work.workspace)))
}
