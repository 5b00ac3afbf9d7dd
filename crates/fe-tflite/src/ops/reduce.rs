//! Reductions, and what runs along an axis.

use carafe_fe_tensorflow::ops::common::reduce::{Fold, reduce};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::search::CumSum;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("CUMSUM", 1, cumsum),
    rule("MEAN", 1, |n| fold(n, Fold::Mean)),
    rule("REDUCE_ALL", 1, |n| fold(n, Fold::All)),
    rule("REDUCE_ANY", 1, |n| fold(n, Fold::Any)),
    rule("REDUCE_MAX", 1, |n| fold(n, Fold::Max)),
    rule("REDUCE_MIN", 1, |n| fold(n, Fold::Min)),
    rule("REDUCE_PROD", 1, |n| fold(n, Fold::Prod)),
    rule("SUM", 1, |n| fold(n, Fold::Sum)),
];

fn fold(n: &mut NodeCx<'_>, fold: Fold) -> Result<Outputs> {
    let (x, axes) = (n.input(0)?, n.input(1)?);
    let keep_dims: bool = n.attr("keep_dims", false)?;
    Ok(reduce(n, fold, x, axes, keep_dims)?.into())
}

fn cumsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = (n.input(0)?, n.input(1)?);
    let (exclusive, reverse) = (n.attr("exclusive", false)?, n.attr("reverse", false)?);
    let axis = n.convert(axis, ElementType::I64)?;
    let axis = carafe_fe_tensorflow::ops::common::shapes::scalar(n, axis)?;
    Ok(n.emit(CumSum { exclusive, reverse }, &[x, axis])?.into())
}
