//! Reductions and searches along axes.

use super::common::reduce::{Fold, reduce};
use super::common::search::{arg, top_k};
use super::common::shapes::known_number;
use super::complex::{self, axes_of};
use super::types::{element_type, is_complex};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("All", 0, |n| fold(n, Fold::All)),
    rule("Any", 0, |n| fold(n, Fold::Any)),
    rule("ArgMax", 0, |n| arg_of(n, true)),
    rule("ArgMin", 0, |n| arg_of(n, false)),
    rule("EuclideanNorm", 0, |n| fold(n, Fold::EuclideanNorm)),
    rule("Max", 0, |n| fold(n, Fold::Max)),
    rule("Mean", 0, |n| fold(n, Fold::Mean)),
    rule("Min", 0, |n| fold(n, Fold::Min)),
    rule("Prod", 0, |n| fold(n, Fold::Prod)),
    rule("Sum", 0, |n| fold(n, Fold::Sum)),
    rule("TopK", 0, |n| {
        let (x, k): (_, i64) = (n.input(0)?, n.required("k")?);
        n.ignore(&["sorted"]);
        let k = n.i64(k)?;
        let (values, indices) = top_k(n, x, k, ElementType::I32)?;
        Ok(vec![values, indices].into())
    }),
    rule("TopKV2", 0, |n| {
        let (x, k) = (n.input(0)?, n.input(1)?);
        n.ignore(&["sorted"]);
        let ty = element_type(n, "index_type", ElementType::I32)?;
        // Indices of 16 bits are made of wider ones.
        let wide = if ty == ElementType::I64 { ElementType::I64 } else { ElementType::I32 };
        let (values, indices) = top_k(n, x, k, wide)?;
        Ok(vec![values, n.convert(indices, ty)?].into())
    }),
];

fn fold(n: &mut NodeCx<'_>, fold: Fold) -> Result<Outputs> {
    let keep: bool = n.attr("keep_dims", false)?;
    let (x, axes) = (n.input(0)?, n.input(1)?);
    let by_parts = matches!(fold, Fold::Mean | Fold::Sum) && is_complex(n, "T");
    let axes = axes_of(n, axes, by_parts)?;
    if fold == Fold::EuclideanNorm && is_complex(n, "T") {
        let (re, im) = complex::parts(n, x)?;
        let size = complex::magnitude(n, re, im)?;
        let norm = reduce(n, fold, size, axes, keep)?;
        return Ok(complex::of_real(n, norm)?.into());
    }
    Ok(reduce(n, fold, x, axes, keep)?.into())
}

fn arg_of(n: &mut NodeCx<'_>, max: bool) -> Result<Outputs> {
    let ty = element_type(n, "output_type", ElementType::I64)?;
    let (x, axis) = (n.input(0)?, n.input(1)?);
    let axis = known_number(n, axis, "the axis")?;
    Ok(arg(n, x, axis, max, ty)?.into())
}
