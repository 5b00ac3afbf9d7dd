//! Convolutions of any number of spatial axes. Repeated values mean one for each axis, which some converters overlook; `_h` and
//! `_w` stand for the two axes of an image. Several bottoms go through the same weights.

use super::cx::LayerCx;
use super::fillers::{Weight, blob_or_value, ignore, weight};
use super::numbers::{dims, picked};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{
    Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData,
};
use carafe_ops::movement::Reshape;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Convolution", 0, |n| convolution(n, Groups::Given)),
    rule("ConvolutionDepthwise", 0, |n| convolution(n, Groups::Depthwise)),
    rule("Deconvolution", 0, deconvolution),
    rule("DepthwiseConvolution", 0, |n| convolution(n, Groups::Depthwise)),
];

/// Where the number of groups comes from.
#[derive(Clone, Copy, PartialEq)]
enum Groups {
    Given,
    /// As many as there are channels; some forks write them as well, others leave 1.
    Depthwise,
}

/// The windows of a layer, one value for each spatial axis.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub pads: Vec<i64>,
}

impl Windows {
    /// Reads them for this many spatial axes.
    pub(super) fn read(n: &NodeCx<'_>, axes: usize) -> Result<Windows> {
        let kernel = list(n, "kernel_size", ["kernel_h", "kernel_w"], None, 1, axes)?;
        let strides = list(n, "stride", ["stride_h", "stride_w"], Some(1), 1, axes)?;
        let pads = list(n, "pad", ["pad_h", "pad_w"], Some(0), 0, axes)?;
        let dilations = list(n, "dilation", ["", ""], Some(1), 1, axes)?;
        n.ignore(&["engine", "force_nd_im2col"]);
        Ok(Windows { kernel, strides, dilations, pads })
    }
}

// `name` once for all axes or once for each; or height and width.
fn list(n: &NodeCx<'_>, name: &str, hw: [&str; 2], default: Option<i64>, least: i64, axes: usize) -> Result<Vec<i64>> {
    let given: Vec<i64> = n.attr(name, vec![])?;
    let single = |name: &str| if name.is_empty() { Ok(None) } else { n.opt_attr::<i64>(name) };
    let (h, w) = (single(hw[0])?, single(hw[1])?);
    let all = match (given.len(), h, w) {
        (0, None, None) => match default {
            Some(d) => vec![d; axes],
            None => return Err(n.fail(format!("has neither `{name}` nor `{}` and `{}`", hw[0], hw[1]))),
        },
        (_, Some(_), _) | (_, _, Some(_)) if axes != 2 => {
            return Err(n.fail(format!("`{}` and `{}` need two spatial axes, the bottom has {axes}", hw[0], hw[1])));
        }
        // A zero beside the repeated field is the default that some tools write out.
        (1.., h, w) if h.unwrap_or(0) != 0 || w.unwrap_or(0) != 0 => {
            return Err(n.fail(format!("has `{name}` as well as `{}` or `{}`", hw[0], hw[1])));
        }
        (0, h, w) => {
            let missing = |name: &str| n.fail(format!("has one of `{}` and `{}`, `{name}` is missing", hw[0], hw[1]));
            let h = h.or(default).ok_or_else(|| missing(hw[0]))?;
            vec![h, w.or(default).ok_or_else(|| missing(hw[1]))?]
        }
        (1, ..) => vec![given[0]; axes],
        (len, ..) if len == axes => given,
        (len, ..) => return Err(n.fail(format!("`{name}` has {len} values for {axes} spatial axes"))),
    };
    match all.iter().find(|v| **v < least || i32::try_from(**v).is_err()) {
        Some(v) => Err(n.fail(format!("`{name}` must be from {least} to {}, found {v}", i32::MAX))),
        None => Ok(all),
    }
}

/// A count that must be there and positive.
pub(super) fn positive(n: &NodeCx<'_>, name: &str, default: Option<i64>) -> Result<usize> {
    let value = match default {
        Some(d) => n.attr(name, d)?,
        None => n.required(name)?,
    };
    let size = usize::try_from(value).ok().filter(|v| *v > 0 && i32::try_from(*v).is_ok());
    size.ok_or_else(|| n.fail(format!("`{name}` must be from 1 to {}, found {value}", i32::MAX)))
}

/// Everything but the data.
struct Filters {
    windows: Windows,
    /// Channels that go in.
    input: usize,
    groups: usize,
    weights: Value,
    bias: Option<Value>,
    /// The axis of the channels.
    axis: usize,
}

// Bottoms agree in all but their batch, so the first one tells the rest.
fn filters(n: &mut NodeCx<'_>, x: Value, groups: Groups, transposed: bool) -> Result<Filters> {
    let rank = n.known_rank(x)?;
    let axis = n.axis(n.attr("axis", 1)?, rank)?;
    let axes = rank - axis - 1;
    if !(1..=3).contains(&axes) {
        return Err(n.unsupported(format!("convolutions have 1 to 3 spatial axes, a bottom of rank {rank} has {axes}")));
    }
    let windows = Windows::read(n, axes)?;
    let output = positive(n, "num_output", None)?;
    let given = positive(n, "group", Some(1))?;
    let kernel: Vec<usize> = windows.kernel.iter().map(|&k| k as usize).collect();
    let channels = n.shape(x).dim(axis).size();
    let channels = match channels {
        Some(c) => c,
        // A bottom of unknown channels has as many as the weights say.
        None => {
            let per_channel = kernel.iter().try_fold(output, |p, k| p.checked_mul(*k));
            let found = n.blob_tensor(0)?.len();
            match (per_channel, groups) {
                (Some(per), Groups::Given) if per > 0 => found / per * given,
                _ => return Err(n.unsupported("the number of channels must be known")),
            }
        }
    };
    let groups = if groups == Groups::Depthwise { channels } else { given };
    if groups == 0 || channels % groups != 0 || output % groups != 0 {
        return Err(n.fail(format!("{channels} channels and {output} outputs do not fall into {groups} groups")));
    }
    // A transposed convolution stores its weights by the channels of its bottom.
    let (outer, inner) = if transposed { (channels, output / groups) } else { (output, channels / groups) };
    let stored = [&[outer, inner], &kernel[..]].concat();
    let shape = if groups > 1 { [&[groups, outer / groups, inner], &kernel[..]].concat() } else { stored.clone() };
    let has_bias: bool = n.attr("bias_term", true)?;
    n.takes_blobs(if has_bias { 2 } else { 1 })?;
    let weights =
        weight(n, &Weight { index: 0, filler: "weight_filler", stored: &stored, shape: &shape, default: None })?;
    let mut bias_shape = vec![1, output];
    bias_shape.extend(vec![1; axes]);
    let bias = match has_bias {
        true => Some(blob_or_value(n, 1, &bias_shape, "bias_filler", 0.0)?),
        false => {
            ignore(n, "bias_filler");
            None
        }
    };
    Ok(Filters { windows, input: channels, groups, weights, bias, axis })
}

fn for_each_bottom(
    n: &mut NodeCx<'_>,
    groups: Groups,
    transposed: bool,
    emit: fn(&mut NodeCx<'_>, &Filters, Value) -> Result<Value>,
) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let Some(&first) = bottoms.first() else { return Err(n.fail("has no bottom")) };
    let f = filters(n, first, groups, transposed)?;
    let mut tops = vec![];
    for x in bottoms {
        if let Some(c) = n.shape(x).dim(f.axis).size()
            && c != f.input
        {
            return Err(n.fail(format!("bottoms have {} and {c} channels, all take the same weights", f.input)));
        }
        let (x, batch) = join_batch(n, x, f.axis)?;
        let mut y = emit(n, &f, x)?;
        if let Some(bias) = f.bias {
            y = n.plus(y, bias)?;
        }
        tops.push(split_batch(n, y, batch)?);
    }
    Ok(tops.into())
}

// All axes before the channels are one batch; their sizes come along.
fn join_batch(n: &mut NodeCx<'_>, x: Value, axis: usize) -> Result<(Value, Option<Value>)> {
    if axis == 1 {
        return Ok((x, None));
    }
    let rank = n.known_rank(x)? as i64;
    let axis = axis as i64;
    let (shape, joined) = (n.shape_of(x)?, n.i64s(&[-1])?);
    let batch = picked(n, shape, &(0..axis).collect::<Vec<_>>())?;
    let image = picked(n, shape, &(axis..rank).collect::<Vec<_>>())?;
    let pattern = n.concat(&[joined, image], 0)?;
    Ok((n.emit(Reshape { special_zero: false }, &[x, pattern])?, Some(batch)))
}

fn split_batch(n: &mut NodeCx<'_>, y: Value, batch: Option<Value>) -> Result<Value> {
    let Some(batch) = batch else { return Ok(y) };
    let rank = n.known_rank(y)? as i64;
    let image = dims(n, y, &(1..rank).collect::<Vec<_>>())?;
    let pattern = n.concat(&[batch, image], 0)?;
    n.emit(Reshape { special_zero: false }, &[y, pattern])
}

fn convolution(n: &mut NodeCx<'_>, groups: Groups) -> Result<Outputs> {
    for_each_bottom(n, groups, false, |n, f, x| {
        let Windows { strides, dilations, pads, .. } = f.windows.clone();
        let (pads_begin, pads_end, auto_pad) = (pads.clone(), pads, PadType::Explicit);
        match f.groups {
            1 => n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, f.weights]),
            _ => n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, f.weights]),
        }
    })
}

fn deconvolution(n: &mut NodeCx<'_>) -> Result<Outputs> {
    for_each_bottom(n, Groups::Given, true, |n, f, x| {
        let Windows { strides, dilations, pads, .. } = f.windows.clone();
        let output_padding = vec![0; strides.len()];
        let (pads_begin, pads_end, auto_pad) = (pads.clone(), pads, PadType::Explicit);
        let inputs = [x, f.weights];
        match f.groups {
            1 => {
                let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
                n.emit(op, &inputs)
            }
            _ => {
                let op =
                    GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
                n.emit(op, &inputs)
            }
        }
    })
}
