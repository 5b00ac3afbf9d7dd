//! Pooling of images.

use super::convolution::windows;
use super::fused::activated;
use carafe_fe_tensorflow::ops::common::{Layout, Windows, pooling};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AVERAGE_POOL_2D", 1, |n| {
        let (x, kernel, w) = (n.input(0)?, kernel(n)?, windows_of(n)?);
        let y = pooling::average(n, x, kernel, &w, Layout::ChannelsLast)?;
        Ok(activated(n, y)?.into())
    }),
    rule("L2_POOL_2D", 1, l2_pool_2d),
    rule("MAX_POOL_2D", 1, |n| {
        let (x, kernel, w) = (n.input(0)?, kernel(n)?, windows_of(n)?);
        let y = pooling::max(n, x, kernel, &w, Layout::ChannelsLast)?;
        Ok(activated(n, y)?.into())
    }),
];

fn windows_of(n: &NodeCx<'_>) -> Result<Windows> {
    windows(n, &["h", "w"])
}

fn kernel(n: &NodeCx<'_>) -> Result<Vec<i64>> {
    let kernel = vec![n.required("filter_height")?, n.required("filter_width")?];
    match kernel.iter().all(|k| *k > 0) {
        true => Ok(kernel),
        false => Err(n.fail(format!("a window of {kernel:?} is not possible"))),
    }
}

// The root of the mean of squares.
fn l2_pool_2d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, kernel, w) = (n.input(0)?, kernel(n)?, windows_of(n)?);
    let squares = n.times(x, x)?;
    let mean = pooling::average(n, squares, kernel, &w, Layout::ChannelsLast)?;
    let y = n.sqrt(mean)?;
    Ok(activated(n, y)?.into())
}
