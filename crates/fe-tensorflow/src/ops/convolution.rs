//! Convolutions. Lists of attributes have one value for each axis of the data, batch and channels included, and those two
//! must be 1.

use super::common::convolution::{convolution, depthwise, transposed};
use super::common::shapes::i64_vector;
use super::common::{Layout, Padding, Windows};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Conv2D", 0, |n| conv(n, 2)),
    rule("Conv2DBackpropInput", 0, |n| conv_transpose(n, 2)),
    rule("Conv3D", 0, |n| conv(n, 3)),
    rule("Conv3DBackpropInputV2", 0, |n| conv_transpose(n, 3)),
    rule("DepthwiseConv2dNative", 0, |n| {
        let (layout, windows) = windows(n, 2)?;
        let (x, filters) = (n.input(0)?, n.input(1)?);
        Ok(depthwise(n, x, filters, &windows, layout)?.into())
    }),
];

/// The layout by `data_format`.
pub(super) fn layout(n: &NodeCx<'_>, n_spatial: usize) -> Result<Layout> {
    let default = if n_spatial == 3 { "NDHWC" } else { "NHWC" };
    let format: String = n.attr("data_format", default.to_string())?;
    Layout::of_format(&format)
}

/// The spatial values of a list attribute, which must be 1 on the other axes.
pub(super) fn spatial_list(n: &NodeCx<'_>, name: &str, n_spatial: usize, layout: Layout) -> Result<Vec<i64>> {
    let list: Vec<i64> = n.attr(name, vec![])?;
    spatial_values(n, name, &list, n_spatial, layout)
}

/// As `spatial_list`, of values that are there already.
pub(super) fn spatial_values(
    n: &NodeCx<'_>,
    name: &str,
    list: &[i64],
    n_spatial: usize,
    layout: Layout,
) -> Result<Vec<i64>> {
    if list.is_empty() {
        return Ok(vec![1; n_spatial]);
    }
    if list.len() != n_spatial + 2 {
        return Err(n.fail(format!("attribute `{name}` must have {} values, found {list:?}", n_spatial + 2)));
    }
    if let Some(v) = list.iter().find(|v| !(1..=i64::from(i32::MAX)).contains(*v)) {
        return Err(n.fail(format!("attribute `{name}` holds {v}, which no window can have")));
    }
    if list[0] != 1 || list[layout.channels(n_spatial + 2)] != 1 {
        return Err(n.unsupported(format!("attribute `{name}` is {list:?}; batch and channels must be 1")));
    }
    Ok(layout.spatial(list))
}

/// The attribute `padding`, and `explicit_paddings` where it says so.
pub(super) fn padding(n: &NodeCx<'_>, n_spatial: usize, layout: Layout) -> Result<Padding> {
    let name: String = n.required("padding")?;
    let explicit: Vec<i64> = n.attr("explicit_paddings", vec![])?;
    if name != "EXPLICIT" {
        return Padding::of_name(&name, &[]);
    }
    if explicit.len() != 2 * (n_spatial + 2) || explicit.iter().any(|p| !(0..=i64::from(i32::MAX)).contains(p)) {
        let wanted = 2 * (n_spatial + 2);
        return Err(n.fail(format!("attribute `explicit_paddings` must be {wanted} pads, found {explicit:?}")));
    }
    let first = 2 * layout.spatial_axis(0);
    Padding::of_name(&name, &explicit[first..first + 2 * n_spatial])
}

fn windows(n: &NodeCx<'_>, n_spatial: usize) -> Result<(Layout, Windows)> {
    let layout = layout(n, n_spatial)?;
    let strides = spatial_list(n, "strides", n_spatial, layout)?;
    let dilations = spatial_list(n, "dilations", n_spatial, layout)?;
    Ok((layout, Windows { strides, dilations, padding: padding(n, n_spatial, layout)? }))
}

fn conv(n: &mut NodeCx<'_>, n_spatial: usize) -> Result<Outputs> {
    let (layout, windows) = windows(n, n_spatial)?;
    let (x, filters) = (n.input(0)?, n.input(1)?);
    Ok(convolution(n, x, filters, &windows, layout)?.into())
}

fn conv_transpose(n: &mut NodeCx<'_>, n_spatial: usize) -> Result<Outputs> {
    let (layout, windows) = windows(n, n_spatial)?;
    let (sizes, filters, x) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let sizes = i64_vector(n, sizes)?;
    // The sizes may be those of space alone.
    let whole = n.shape(sizes).dims().and_then(|d| d.first()?.size()) != Some(n_spatial);
    let channels = n.ints(sizes).filter(|_| whole).and_then(|s| s.get(layout.channels(n_spatial + 2)).copied());
    let output = if whole {
        let first = layout.spatial_axis(0) as i64;
        n.part(sizes, first, first + n_spatial as i64, 0)?
    } else {
        sizes
    };
    Ok(transposed(n, x, filters, output, channels, &windows, layout)?.into())
}
