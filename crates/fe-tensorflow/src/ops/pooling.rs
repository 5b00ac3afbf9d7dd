//! Pooling.

use super::common::pooling::{average, max, max_with_index};
use super::common::{Layout, Windows};
use super::convolution::{layout, padding, spatial_list, spatial_values};
use super::types::element_type;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AvgPool", 0, |n| pool(n, 2, average)),
    rule("AvgPool3D", 0, |n| pool(n, 3, average)),
    rule("AvgPoolV2", 0, |n| pool_by_inputs(n, average)),
    rule("MaxPool", 0, |n| pool(n, 2, max)),
    rule("MaxPool3D", 0, |n| pool(n, 3, max)),
    rule("MaxPoolV2", 0, |n| pool_by_inputs(n, max)),
    rule("MaxPoolWithArgmax", 0, with_argmax),
];

type Pool = fn(&mut NodeCx<'_>, Value, Vec<i64>, &Windows, Layout) -> Result<Value>;

fn windows(n: &NodeCx<'_>, strides: Vec<i64>, n_spatial: usize, layout: Layout) -> Result<Windows> {
    Ok(Windows { strides, dilations: vec![1; n_spatial], padding: padding(n, n_spatial, layout)? })
}

fn pool(n: &mut NodeCx<'_>, n_spatial: usize, of: Pool) -> Result<Outputs> {
    let layout = layout(n, n_spatial)?;
    let kernel = spatial_list(n, "ksize", n_spatial, layout)?;
    let strides = spatial_list(n, "strides", n_spatial, layout)?;
    let windows = windows(n, strides, n_spatial, layout)?;
    let x = n.input(0)?;
    Ok(of(n, x, kernel, &windows, layout)?.into())
}

// Sizes and strides are inputs, which must be constants.
fn pool_by_inputs(n: &mut NodeCx<'_>, of: Pool) -> Result<Outputs> {
    let layout = layout(n, 2)?;
    let (x, kernel, strides) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (Some(kernel), Some(strides)) = (n.ints(kernel), n.ints(strides)) else {
        return Err(n.unsupported("size and strides of the windows must be known when the model is read"));
    };
    let kernel = spatial_values(n, "ksize", &kernel, 2, layout)?;
    let strides = spatial_values(n, "strides", &strides, 2, layout)?;
    let windows = windows(n, strides, 2, layout)?;
    Ok(of(n, x, kernel, &windows, layout)?.into())
}

fn with_argmax(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let layout = Layout::ChannelsLast;
    let kernel = spatial_list(n, "ksize", 2, layout)?;
    let strides = spatial_list(n, "strides", 2, layout)?;
    let windows = windows(n, strides, 2, layout)?;
    let batch: bool = n.attr("include_batch_in_index", false)?;
    let index = element_type(n, "Targmax", ElementType::I64)?;
    let x = n.input(0)?;
    let (y, at) = max_with_index(n, x, kernel, &windows, batch)?;
    Ok(vec![y, n.convert(at, index)?].into())
}
