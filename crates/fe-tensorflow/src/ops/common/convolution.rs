//! Convolutions of data in either layout. Filters have the order of TensorFlow, spatial axes first; they are transposed as
//! values, which folds where they are constants.

use super::layout::Layout;
use super::windows::{Padding, Windows};
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData};

/// Convolution with filters `[spatial..., I / groups, O]`; how many groups there are follows from the channels.
pub fn convolution(n: &mut NodeCx<'_>, x: Value, filters: Value, w: &Windows, layout: Layout) -> Result<Value> {
    let spatial = w.n_spatial();
    let channels = n.rank(x).and_then(|r| n.shape(x).dim(layout.channels(r)).get());
    let groups = groups(n, channels, filters, spatial)?;
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let x = layout.to_first(n, x, spatial)?;
    let filters = filters_first(n, filters, spatial)?;
    let y = if groups == 1 {
        n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?
    } else {
        let filters = in_groups(n, filters, groups)?;
        n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?
    };
    layout.from_first(n, y, spatial)
}

/// Convolution of each channel alone with filters `[spatial..., C, M]`; output channel `c * M + m`.
pub fn depthwise(n: &mut NodeCx<'_>, x: Value, filters: Value, w: &Windows, layout: Layout) -> Result<Value> {
    let spatial = w.n_spatial();
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let s = spatial as i64;
    let order: Vec<i64> = [s, s + 1].into_iter().chain(0..s).collect();
    let filters = n.transpose(filters, &order)?;
    let filters = n.unsqueeze(filters, &[2])?;
    let x = layout.to_first(n, x, spatial)?;
    let y = n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?;
    layout.from_first(n, y, spatial)
}

/// Transposed convolution with filters `[spatial..., O / groups, I]` of data with `I` channels. `output` is the spatial
/// shape of the result, an i64 vector; `channels` its number of channels where that is known.
pub fn transposed(
    n: &mut NodeCx<'_>,
    x: Value,
    filters: Value,
    output: Value,
    channels: Option<i64>,
    w: &Windows,
    layout: Layout,
) -> Result<Value> {
    let spatial = w.n_spatial();
    let groups = groups(n, channels, filters, spatial)?;
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    // The odd one of the pads is at the other end than forward.
    let auto_pad = if w.padding == Padding::Same { PadType::SameLower } else { auto_pad };
    let (strides, dilations) = (w.strides.clone(), w.dilations.clone());
    let output_padding = vec![0; spatial];
    let x = layout.to_first(n, x, spatial)?;
    let filters = filters_first(n, filters, spatial)?;
    let y = if groups == 1 {
        let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        n.emit(op, &[x, filters, output])?
    } else {
        let filters = in_groups(n, filters, groups)?;
        let op = GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        n.emit(op, &[x, filters, output])?
    };
    layout.from_first(n, y, spatial)
}

// [spatial..., I, O] to [O, I, spatial...].
fn filters_first(n: &mut NodeCx<'_>, filters: Value, spatial: usize) -> Result<Value> {
    let s = spatial as i64;
    let order: Vec<i64> = [s + 1, s].into_iter().chain(0..s).collect();
    n.transpose(filters, &order)
}

// [G * A, B, ...] to [G, A, B, ...].
fn in_groups(n: &mut NodeCx<'_>, filters: Value, groups: i64) -> Result<Value> {
    if let Some(shape) = n.shape(filters).to_static().filter(|s| s.iter().all(|&d| d > 0)) {
        let mut pattern = vec![groups, -1];
        pattern.extend(shape.iter().skip(1).map(|&d| d as i64));
        return n.reshape(filters, &pattern);
    }
    let shape = n.shape_of(filters)?;
    let rest = n.part(shape, 1, i64::MAX, 0)?;
    let front = n.i64s(&[groups, -1])?;
    let shape = n.concat(&[front, rest], 0)?;
    n.reshaped(filters, shape, false)
}

// Channels of the data over channels of a filter; one group where either is not known.
fn groups(n: &NodeCx<'_>, channels: Option<i64>, filters: Value, spatial: usize) -> Result<i64> {
    let (Some(channels), Some(depth)) = (channels, n.shape(filters).dim(spatial).get()) else { return Ok(1) };
    if depth <= 0 || channels % depth != 0 {
        return Err(n.fail(format!("filters of {depth} channels do not divide {channels} channels of the data")));
    }
    Ok((channels / depth).max(1))
}
