//! Pooling of data in either layout. A mean counts only what is data, as TensorFlow does.

use super::layout::Layout;
use super::windows::Windows;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::Rounding;
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_tensor::ElementType;

/// The mean of every window.
pub fn average(n: &mut NodeCx<'_>, x: Value, kernel: Vec<i64>, w: &Windows, layout: Layout) -> Result<Value> {
    let spatial = w.n_spatial();
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(spatial)?;
    let op = AvgPool {
        dilations: w.dilations.clone(),
        strides: w.strides.clone(),
        pads_begin,
        pads_end,
        kernel,
        exclude_pad: true,
        auto_pad,
        rounding_type: Rounding::Floor,
    };
    let x = layout.to_first(n, x, spatial)?;
    let y = n.emit(op, &[x])?;
    layout.from_first(n, y, spatial)
}

/// The largest of every window.
pub fn max(n: &mut NodeCx<'_>, x: Value, kernel: Vec<i64>, w: &Windows, layout: Layout) -> Result<Value> {
    let spatial = w.n_spatial();
    let op = max_pool(kernel, w)?;
    let x = layout.to_first(n, x, spatial)?;
    let y = n.emit(op, &[x])?;
    layout.from_first(n, y, spatial)
}

fn max_pool(kernel: Vec<i64>, w: &Windows) -> Result<MaxPool> {
    let (auto_pad, pads_begin, pads_end) = w.padding.attributes(w.n_spatial())?;
    Ok(MaxPool {
        strides: w.strides.clone(),
        dilations: w.dilations.clone(),
        pads_begin,
        pads_end,
        kernel,
        rounding_type: Rounding::Floor,
        auto_pad,
        index_element_type: ElementType::I64,
        axis: 2,
    })
}

/// The largest of every window of `[N, H, W, C]`, and its index in the flattened image of channels last; with `batch` in
/// the flattened batch.
pub fn max_with_index(
    n: &mut NodeCx<'_>,
    x: Value,
    kernel: Vec<i64>,
    w: &Windows,
    batch: bool,
) -> Result<(Value, Value)> {
    let (layout, spatial) = (Layout::ChannelsLast, w.n_spatial());
    let first = layout.to_first(n, x, spatial)?;
    let outputs = n.emit_all(max_pool(kernel, w)?, &[first])?;
    // The index counts positions of one channel.
    let (channels, images) = (n.length(first, 1)?, n.length(first, 0)?);
    let scaled = n.times(outputs[1], channels)?;
    let channel = n.count_to(channels, ElementType::I64)?;
    let channel = n.with_axes(channel, &(1..=spatial as i64).collect::<Vec<_>>())?;
    let mut index = n.plus(scaled, channel)?;
    if batch {
        let shape = n.shape_of(first)?;
        let sizes = n.part(shape, 1, i64::MAX, 0)?;
        let zero = n.i64(0)?;
        let size = n.put(carafe_ops::reduce::ReduceProd { keep_dims: false }, &[sizes, zero])?;
        let image = n.count_to(images, ElementType::I64)?;
        let image = n.times(image, size)?;
        let image = n.with_axes(image, &(1..spatial as i64 + 2).collect::<Vec<_>>())?;
        index = n.plus(index, image)?;
    }
    Ok((layout.from_first(n, outputs[0], spatial)?, layout.from_first(n, index, spatial)?))
}
