//! Shared by the softmaxes: the axis, and the walk over the lines along it. Lines are shifted by their maximum before
//! `exp`; a line that holds plus infinity or nothing but minus infinity is NaN throughout.

use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Result, normalize_axis};

/// Float data with this axis, output alike.
pub(crate) fn infer(cx: &mut InferCx<'_>, axis: i64) -> Result<()> {
    cx.require_float(0)?;
    if let Some(rank) = cx.rank(0) {
        // A scalar counts as a vector of one element.
        cx.axis(axis, rank.max(1))?;
    }
    cx.output_like(0, 0);
    Ok(())
}

/// Replaces every line along `axis`; `f` gets the line with its maximum already subtracted.
pub(crate) fn map(cx: &mut EvalCx<'_>, axis: i64, f: impl Fn(&mut [f64])) -> Result<()> {
    let shape = cx.shape(0).to_vec();
    let (outer, n, inner) = match shape.len() {
        0 => (1, 1, 1),
        rank => around(&shape, normalize_axis(axis, rank)?),
    };
    let mut data = cx.get::<f64>(0)?.into_owned();
    let mut line = vec![0.0; n];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let start = o * n * inner + i;
        for (k, x) in line.iter_mut().enumerate() {
            *x = data[start + k * inner];
        }
        let max = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        line.iter_mut().for_each(|x| *x -= max);
        f(&mut line);
        for (k, &x) in line.iter().enumerate() {
            data[start + k * inner] = x;
        }
    }
    cx.put(0, &shape, data)
}
