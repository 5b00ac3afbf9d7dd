//! Convolution and Deconvolution over one to three axes, grouped or not.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{
    Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData,
};

pub(super) const RULES: &[StaticRule] = &[
    rule("Convolution", 0, convolution),
    rule("Convolution_v1", 0, convolution),
    rule("Deconvolution", 0, deconvolution),
];

/// The window of a convolution.
pub(super) struct Window {
    pub(super) kernel: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) pads: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) groups: i64,
}

impl Window {
    pub(super) fn of(n: &NodeCx<'_>) -> Result<Window> {
        let kernel = n.ints_of("kernel")?;
        let axes = kernel.len();
        if !(1..=3).contains(&axes) {
            return Err(n.unsupported(format!("attribute `kernel` has {axes} numbers; one to three are supported")));
        }
        n.ignore(&["num_filter"]);
        let groups = n.int("num_group", 1)?;
        if groups < 1 {
            return Err(n.fail(format!("attribute `num_group` must be at least 1, found {groups}")));
        }
        Ok(Window {
            strides: n.per_axis("stride", axes, 1)?,
            pads: n.per_axis("pad", axes, 0)?,
            dilations: n.per_axis("dilate", axes, 1)?,
            groups,
            kernel,
        })
    }
}

/// With channels behind the first axis, for operators that are told another layout.
pub(super) fn channels_first(n: &mut NodeCx<'_>, x: Value, axes: usize, is_last: bool) -> Result<Value> {
    let mut order = vec![0, axes as i64 + 1];
    order.extend(1..=axes as i64);
    if is_last { n.transpose(x, &order) } else { Ok(x) }
}

/// The way back.
pub(super) fn channels_last(n: &mut NodeCx<'_>, x: Value, axes: usize, is_last: bool) -> Result<Value> {
    let mut order = vec![0];
    order.extend(2..axes as i64 + 2);
    order.push(1);
    if is_last { n.transpose(x, &order) } else { Ok(x) }
}

/// Whether channels stand at the end.
pub(super) fn is_channels_last(n: &NodeCx<'_>, axes: usize) -> Result<bool> {
    let known = [["NCW", "NWC"], ["NCHW", "NHWC"], ["NCDHW", "NDHWC"]][axes - 1];
    match n.text("layout") {
        None => Ok(false),
        Some(layout) if layout == known[0] => Ok(false),
        Some(layout) if layout == known[1] => Ok(true),
        Some(layout) => Err(n.unknown_word("layout", &layout, &known.join(", "))),
    }
}

/// A weight `[groups * a, b, ..]` as `[groups, a, b, ..]`.
fn grouped(n: &mut NodeCx<'_>, weight: Value, groups: i64, axes: usize) -> Result<Value> {
    let rest = n.dims_at(weight, &(1..axes as i64 + 2).collect::<Vec<_>>())?;
    let first = n.i64s(&[groups, -1])?;
    let shape = n.concat(&[first, rest], 0)?;
    n.reshaped(weight, shape, false)
}

/// Adds a value for each channel.
pub(super) fn add_bias(n: &mut NodeCx<'_>, y: Value, bias: Value, axes: usize) -> Result<Value> {
    let bias = n.convert_like(bias, y)?;
    let bias = n.along(bias, 1, axes + 2)?;
    n.plus(y, bias)
}

fn convolution(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, weight) = (n.input(0)?, n.input(1)?);
    let w = Window::of(n)?;
    let axes = w.kernel.len();
    let is_last = is_channels_last(n, axes)?;
    let x = channels_first(n, x, axes, is_last)?;
    let weight = channels_first(n, weight, axes, is_last)?;
    let weight = n.convert_like(weight, x)?;
    let y = convolve(n, x, weight, &w)?;
    let y = match n.flag("no_bias", false)? {
        true => {
            n.ignore_inputs(2);
            y
        }
        false => {
            let bias = n.input(2)?;
            add_bias(n, y, bias, axes)?
        }
    };
    Ok(channels_last(n, y, axes, is_last)?.into())
}

fn convolve(n: &mut NodeCx<'_>, x: Value, weight: Value, w: &Window) -> Result<Value> {
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let (pads_begin, pads_end, auto_pad) = (w.pads.clone(), w.pads.clone(), PadType::Explicit);
    if w.groups == 1 {
        return n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, weight]);
    }
    let weight = grouped(n, weight, w.groups, w.kernel.len())?;
    n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, weight])
}

fn deconvolution(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, weight) = (n.input(0)?, n.input(1)?);
    let w = Window::of(n)?;
    let axes = w.kernel.len();
    if is_channels_last(n, axes)? {
        return Err(n.unsupported("attribute `layout` with channels last is supported for Convolution alone"));
    }
    let weight = n.convert_like(weight, x)?;
    let target = n.ints_of("target_shape")?;
    let given = !target.is_empty() && target.iter().any(|t| *t > 0);
    let adjust = n.per_axis("adj", axes, 0)?;
    let y = match given {
        true => to_size(n, x, weight, &w, &target)?,
        false => backward(n, x, weight, &w, &w.pads, &w.pads, &adjust)?,
    };
    let y = match n.flag("no_bias", true)? {
        true => {
            n.ignore_inputs(2);
            y
        }
        false => {
            let bias = n.input(2)?;
            add_bias(n, y, bias, axes)?
        }
    };
    Ok(y.into())
}

fn backward(
    n: &mut NodeCx<'_>,
    x: Value,
    weight: Value,
    w: &Window,
    begin: &[i64],
    end: &[i64],
    adjust: &[i64],
) -> Result<Value> {
    let (strides, dilations, auto_pad) = (w.strides.clone(), w.dilations.clone(), PadType::Explicit);
    let (pads_begin, pads_end, output_padding) = (begin.to_vec(), end.to_vec(), adjust.to_vec());
    if w.groups == 1 {
        let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        return n.emit(op, &[x, weight]);
    }
    let weight = grouped(n, weight, w.groups, w.kernel.len())?;
    let op = GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
    n.emit(op, &[x, weight])
}

// Of the whole result the middle part of that size; `pad` and `adj` are not looked at.
fn to_size(n: &mut NodeCx<'_>, x: Value, weight: Value, w: &Window, target: &[i64]) -> Result<Value> {
    let axes = w.kernel.len();
    if target.len() != axes {
        return Err(n.fail(format!("attribute `target_shape` has {} numbers, the window has {axes} axes", target.len())));
    }
    let none = vec![0; axes];
    let mut y = backward(n, x, weight, w, &none, &none, &none)?;
    for (i, size) in target.iter().enumerate() {
        let axis = i as i64 + 2;
        // What is too much is cut off on both sides, one more in front.
        let whole = n.size(y, axis)?;
        let target = n.i64s(&[*size])?;
        let total = n.minus(whole, target)?;
        let one = n.i64s(&[1])?;
        let total = n.plus(total, one)?;
        let two = n.i64s(&[2])?;
        let start = n.over(total, two)?;
        let stop = n.plus(start, target)?;
        y = n.cut(y, start, stop, axis)?;
    }
    Ok(y)
}
