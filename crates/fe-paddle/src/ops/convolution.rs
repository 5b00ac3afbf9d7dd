//! Convolutions. Filters are `[O, I / groups, spatial..]`, of transposed ones `[I, O / groups, spatial..]`, in either layout of the data.

use super::slots::{Slots, in_channels_first};
use super::windows::{Windows, windows};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{
    Convolution, ConvolutionBackpropData, DeformableConvolution, GroupConvolution, GroupConvolutionBackpropData,
};

pub(super) const RULES: &[StaticRule] = &[
    rule("conv2d", 0, conv),
    rule("conv2d_transpose", 0, transposed),
    rule("conv3d", 0, conv),
    rule("conv3d_transpose", 0, transposed),
    rule("deformable_conv", 0, deformable),
    rule("deformable_conv_v1", 0, deformable),
    rule("depthwise_conv2d", 0, conv),
    rule("depthwise_conv2d_transpose", 0, transposed),
];

/// Filters with their groups as an axis in front.
fn grouped(n: &mut NodeCx<'_>, filters: Value, groups: i64) -> Result<Value> {
    let rank = n.known_rank(filters)?;
    let first = n.shape(filters).dim(0).get();
    let first = first.ok_or_else(|| n.unsupported("the number of filters must be known"))?;
    if groups <= 0 || first % groups != 0 {
        return Err(n.fail(format!("{groups} groups of {first} filters")));
    }
    match n.shape(filters).to_static() {
        Some(dims) => {
            let mut shape = vec![groups, first / groups];
            shape.extend(dims[1..].iter().map(|d| *d as i64));
            n.reshape(filters, &shape)
        }
        None => {
            let shape = n.shape_of(filters)?;
            let rest = n.part(shape, 1, rank as i64, 0)?;
            let front = n.i64s(&[groups, first / groups])?;
            let shape = n.concat(&[front, rest], 0)?;
            n.reshaped(filters, shape, false)
        }
    }
}

fn conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.slot("Input")?, n.slot("Filter")?);
    let bias = n.opt_slot("Bias")?;
    n.ignore_slots(&["ResidualData"]);
    let spatial = n.known_rank(filters)? - 2;
    let w = windows(n, spatial)?;
    let groups: i64 = n.attr("groups", 1)?;
    let is_last = n.is_channels_last("data_format")?;
    let out = in_channels_first(n, x, is_last, |n, x| {
        let y = forward(n, x, filters, groups, &w)?;
        with_bias(n, y, bias, spatial)
    })?;
    Ok(n.give(&[("Output", out), ("Out", out)]))
}

fn with_bias(n: &mut NodeCx<'_>, y: Value, bias: Option<Value>, spatial: usize) -> Result<Value> {
    let Some(bias) = bias else { return Ok(y) };
    let mut shape = vec![1, -1];
    shape.extend(vec![1; spatial]);
    let bias = n.reshape(bias, &shape)?;
    n.plus(y, bias)
}

fn forward(n: &mut NodeCx<'_>, x: Value, filters: Value, groups: i64, w: &Windows) -> Result<Value> {
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let (pads_begin, pads_end, auto_pad) = (w.begin.clone(), w.end.clone(), w.auto_pad);
    if groups == 1 {
        return n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters]);
    }
    let filters = grouped(n, filters, groups)?;
    n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])
}

fn transposed(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.slot("Input")?, n.slot("Filter")?);
    let bias = n.opt_slot("Bias")?;
    let spatial = n.known_rank(filters)? - 2;
    let w = windows(n, spatial)?;
    let groups: i64 = n.attr("groups", 1)?;
    let is_last = n.is_channels_last("data_format")?;
    let padding: Vec<i64> = n.attr("output_padding", vec![])?;
    let size = n.known_ints("output_size", &["OutputSizeTensor", "OutputSizeTensorList"])?.unwrap_or_default();
    let out = in_channels_first(n, x, is_last, |n, x| {
        let y = backward(n, x, filters, groups, &w, &padding, &size)?;
        with_bias(n, y, bias, spatial)
    })?;
    Ok(n.give(&[("Output", out), ("Out", out)]))
}

fn backward(
    n: &mut NodeCx<'_>,
    x: Value,
    filters: Value,
    groups: i64,
    w: &Windows,
    padding: &[i64],
    size: &[i64],
) -> Result<Value> {
    let mut w = w.clone();
    let spatial = w.strides.len();
    if w.auto_pad == PadType::SameUpper {
        // The output is the input times the stride; what is over goes away at both ends.
        for i in 0..spatial {
            let (Some(size), Some(kernel)) = (n.shape(x).dim(2 + i).get(), n.shape(filters).dim(2 + i).get()) else {
                return Err(n.unsupported("`SAME` pads of a transposed convolution need sizes that are known"));
            };
            let stride = w.strides[i].max(1);
            let sum = (((size + stride - 1) / stride - 1) * stride + kernel - size).max(0);
            (w.begin[i], w.end[i]) = (sum / 2, sum - sum / 2);
        }
    }
    let mut output_padding = if padding.is_empty() { vec![0; spatial] } else { padding.to_vec() };
    if output_padding.len() == 1 {
        output_padding = vec![output_padding[0]; spatial];
    }
    if !size.is_empty() {
        let size = if size.len() == spatial + 2 { &size[2..] } else { size };
        for i in 0..spatial {
            let (Some(given), Some(kernel)) = (n.shape(x).dim(2 + i).get(), n.shape(filters).dim(2 + i).get()) else {
                return Err(n.unsupported("`output_size` needs sizes of the input that are known"));
            };
            let wanted = size.get(i).copied().unwrap_or(0);
            let natural = (given - 1) * w.strides[i] - w.begin[i] - w.end[i] + w.dilations[i] * (kernel - 1) + 1;
            if wanted < natural {
                return Err(n.fail(format!("`output_size` is {wanted} on an axis whose result has {natural} at least")));
            }
            output_padding[i] = wanted - natural;
        }
    }
    let Windows { strides, dilations, begin: pads_begin, end: pads_end, .. } = w;
    let auto_pad = PadType::Explicit;
    if groups == 1 {
        let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        return n.emit(op, &[x, filters]);
    }
    let filters = grouped(n, filters, groups)?;
    let op = GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
    n.emit(op, &[x, filters])
}

fn deformable(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, offset, filters) = (n.slot("Input")?, n.slot("Offset")?, n.slot("Filter")?);
    let mask = n.opt_slot("Mask")?;
    let w = windows(n, 2)?;
    n.ignore(&["im2col_step"]);
    let op = DeformableConvolution {
        strides: w.strides,
        pads_begin: w.begin,
        pads_end: w.end,
        dilations: w.dilations,
        auto_pad: w.auto_pad,
        group: n.attr("groups", 1)?,
        deformable_group: n.attr("deformable_groups", 1)?,
        bilinear_interpolation_pad: true,
    };
    let inputs: Vec<Value> = [x, offset, filters].into_iter().chain(mask).collect();
    let out = n.emit(op, &inputs)?;
    Ok(n.give(&[("Output", out), ("Out", out)]))
}
