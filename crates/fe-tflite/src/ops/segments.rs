//! Rows folded by segment.

use carafe_fe_tensorflow::ops::common::segments::{Fold, unsorted};
use carafe_fe_tensorflow::ops::common::shapes::all_axes;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::reduce::ReduceMax;

pub(crate) const RULES: &[StaticRule] = &[
    rule("SEGMENT_SUM", 1, segment_sum),
    rule("UNSORTED_SEGMENT_MAX", 1, |n| fold(n, Fold::Max)),
    rule("UNSORTED_SEGMENT_MIN", 1, |n| fold(n, Fold::Min)),
    rule("UNSORTED_SEGMENT_PROD", 1, |n| fold(n, Fold::Prod)),
    rule("UNSORTED_SEGMENT_SUM", 1, |n| fold(n, Fold::Sum)),
];

fn fold(n: &mut NodeCx<'_>, fold: Fold) -> Result<Outputs> {
    let (x, ids, count) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(unsorted(n, x, ids, count, fold)?.into())
}

// As many rows as the last number says.
fn segment_sum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, ids) = (n.input(0)?, n.input(1)?);
    let axes = all_axes(n, ids)?;
    let last = n.emit(ReduceMax { keep_dims: false }, &[ids, axes])?;
    let count = n.plus_number(last, 1.0)?;
    Ok(unsorted(n, x, ids, count, Fold::Sum)?.into())
}
