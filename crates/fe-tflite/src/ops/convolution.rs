//! Convolutions. Data is `[N, spatial.., C]`. Filters of two axes are `[O, H, W, I]`, of three `[D, H, W, I, O]`.

use super::fused::activated;
use super::weights::reordered;
use carafe_fe_tensorflow::ops::common::shapes::i64_vector;
use carafe_fe_tensorflow::ops::common::{Layout, Padding, Windows, convolution};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution};

pub(crate) const RULES: &[StaticRule] = &[
    rule("CONV_2D", 1, conv_2d),
    rule("CONV_3D", 1, conv_3d),
    rule("CONV_3D_TRANSPOSE", 1, conv_3d_transpose),
    rule("DEPTHWISE_CONV_2D", 1, depthwise_conv_2d),
    rule("TRANSPOSE_CONV", 1, transpose_conv),
];

const LAYOUT: Layout = Layout::ChannelsLast;

/// The windows that the options describe, over these axes.
pub(super) fn windows(n: &NodeCx<'_>, axes: &[&str]) -> Result<Windows> {
    let padding: String = n.attr("padding", "SAME".to_string())?;
    let list = |prefix: &str, suffix: &str| -> Result<Vec<i64>> {
        let each = axes.iter().map(|a| n.attr::<i64>(&format!("{prefix}_{a}{suffix}"), 1));
        each.map(|v| v.and_then(|v| if v > 0 { Ok(v) } else { Err(n.fail(format!("a {prefix} is {v}"))) })).collect()
    };
    Ok(Windows {
        strides: list("stride", "")?,
        dilations: list("dilation", "_factor")?,
        padding: Padding::of_name(&padding, &[])?,
    })
}

/// Adds the bias, where there is one, and applies the activation.
fn finished(n: &mut NodeCx<'_>, mut y: Value, bias: usize) -> Result<Outputs> {
    n.ignore(&["quantized_bias_type"]);
    if let Some(bias) = n.opt(bias)? {
        y = n.plus(y, bias)?;
    }
    Ok(activated(n, y)?.into())
}

fn conv_2d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.input(0)?, n.input(1)?);
    let w = windows(n, &["h", "w"])?;
    let (channels, depth) = (n.shape(x).dim(3).get(), n.shape(filters).dim(3).get());
    let groups = match (channels, depth) {
        (Some(channels), Some(depth)) if depth > 0 && channels % depth == 0 => (channels / depth).max(1),
        (Some(channels), Some(depth)) => {
            return Err(n.fail(format!("filters of {depth} channels do not divide {channels} channels of the data")));
        }
        _ => 1,
    };
    let y = match groups {
        1 => {
            let filters = reordered(n, filters, &[0, 3, 1, 2], None)?;
            forward(n, x, filters, &w, false)?
        }
        groups => {
            let filters = reordered(n, filters, &[0, 3, 1, 2], Some([groups, -1]))?;
            forward(n, x, filters, &w, true)?
        }
    };
    finished(n, y, 2)
}

// Filter `[1, H, W, C * M]`: output channel `c * M + m` reads channel c.
fn depthwise_conv_2d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.input(0)?, n.input(1)?);
    n.ignore(&["depth_multiplier"]);
    let w = windows(n, &["h", "w"])?;
    let channels = n.shape(x).dim(3).get();
    let channels = channels.ok_or_else(|| n.unsupported("the number of channels must be known"))?;
    // [C * M, 1, H, W] and then [C, M, 1, H, W].
    let filters = reordered(n, filters, &[3, 0, 1, 2], Some([channels, -1]))?;
    let y = forward(n, x, filters, &w, true)?;
    finished(n, y, 2)
}

/// Convolution with filters in the order of the operation.
fn forward(n: &mut NodeCx<'_>, x: Value, filters: Value, w: &Windows, grouped: bool) -> Result<Value> {
    let spatial = w.n_spatial();
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let x = LAYOUT.to_first(n, x, spatial)?;
    let y = match grouped {
        false => n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?,
        true => n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?,
    };
    LAYOUT.from_first(n, y, spatial)
}

// Shape of the result, filters [O, H, W, I], data, bias.
fn transpose_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (shape, filters, x) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let w = windows(n, &["h", "w"])?;
    let shape = i64_vector(n, shape)?;
    let output = n.part(shape, 1, 3, 0)?;
    let filters = reordered(n, filters, &[3, 0, 1, 2], None)?;
    let y = backward(n, x, filters, output, &w)?;
    finished(n, y, 3)
}

/// Transposed convolution to this spatial shape, with filters in the order of the operation.
pub(super) fn backward(n: &mut NodeCx<'_>, x: Value, filters: Value, output: Value, w: &Windows) -> Result<Value> {
    let spatial = w.n_spatial();
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    // The odd one of the pads is at the other end than forward.
    let auto_pad = if w.padding == Padding::Same { PadType::SameLower } else { auto_pad };
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let x = LAYOUT.to_first(n, x, spatial)?;
    let output_padding = vec![0; spatial];
    let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
    let y = n.emit(op, &[x, filters, output])?;
    LAYOUT.from_first(n, y, spatial)
}

fn conv_3d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.input(0)?, n.input(1)?);
    let w = windows(n, &["d", "h", "w"])?;
    let y = convolution::convolution(n, x, filters, &w, LAYOUT)?;
    finished(n, y, 2)
}

// Shape of the result, filters [D, H, W, O, I], data, bias.
fn conv_3d_transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (shape, filters, x) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let w = windows(n, &["d", "h", "w"])?;
    let shape = i64_vector(n, shape)?;
    let output = n.part(shape, 1, 4, 0)?;
    let y = convolution::transposed(n, x, filters, output, None, &w, LAYOUT)?;
    finished(n, y, 3)
}
