//! Rows folded by segment. Sorted segments end with the last id; a segment without rows is 0, or the value of none.

use super::common::segments::{Fold, unsorted};
use super::common::shapes::{i64_vector, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::SegmentMax;
use carafe_ops::indexing::segment_max::FillMode;
use carafe_ops::math::Negative;

pub(crate) const RULES: &[StaticRule] = &[
    rule("SegmentMax", 0, |n| {
        let (data, ids) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(SegmentMax { fill_mode: FillMode::Zero }, &[data, ids])?.into())
    }),
    rule("SegmentMean", 0, |n| {
        let (data, ids) = (n.input(0)?, n.input(1)?);
        Ok(sorted(n, data, ids, None, Share::Mean)?.into())
    }),
    rule("SegmentMin", 0, |n| {
        let (data, ids) = (n.input(0)?, n.input(1)?);
        let data = n.emit(Negative, &[data])?;
        let most = n.emit(SegmentMax { fill_mode: FillMode::Zero }, &[data, ids])?;
        Ok(n.emit(Negative, &[most])?.into())
    }),
    rule("SegmentProd", 0, |n| {
        let (data, ids) = (n.input(0)?, n.input(1)?);
        let count = count(n, ids)?;
        Ok(unsorted(n, data, ids, count, Fold::Prod)?.into())
    }),
    rule("SegmentSum", 0, |n| {
        let (data, ids) = (n.input(0)?, n.input(1)?);
        Ok(sorted(n, data, ids, None, Share::Sum)?.into())
    }),
    rule("SparseSegmentMean", 0, |n| sparse(n, Share::Mean)),
    rule("SparseSegmentMeanWithNumSegments", 0, |n| sparse(n, Share::Mean)),
    rule("SparseSegmentSqrtN", 0, |n| sparse(n, Share::SqrtN)),
    rule("SparseSegmentSqrtNWithNumSegments", 0, |n| sparse(n, Share::SqrtN)),
    rule("SparseSegmentSum", 0, |n| sparse(n, Share::Sum)),
    rule("SparseSegmentSumWithNumSegments", 0, |n| sparse(n, Share::Sum)),
    rule("UnsortedSegmentMax", 0, |n| by_number(n, Fold::Max)),
    rule("UnsortedSegmentMin", 0, |n| by_number(n, Fold::Min)),
    rule("UnsortedSegmentProd", 0, |n| by_number(n, Fold::Prod)),
    rule("UnsortedSegmentSum", 0, |n| by_number(n, Fold::Sum)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    Sum,
    Mean,
    SqrtN,
}

fn by_number(n: &mut NodeCx<'_>, fold: Fold) -> Result<Outputs> {
    let (data, ids, count) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(unsorted(n, data, ids, count, fold)?.into())
}

// Rows that indices choose, before they are folded.
fn sparse(n: &mut NodeCx<'_>, share: Share) -> Result<Outputs> {
    let (data, indices, ids) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let count = n.opt(3)?;
    let rows = n.gather(data, indices, 0)?;
    Ok(sorted(n, rows, ids, count, share)?.into())
}

// One more than the largest id, which may be 0 ids.
fn count(n: &mut NodeCx<'_>, ids: Value) -> Result<Value> {
    let ids = i64_vector(n, ids)?;
    let none = n.i64s(&[-1])?;
    let all = n.concat(&[none, ids], 0)?;
    let most = n.max_over(all, &[0], false)?;
    n.plus_number(most, 1.0)
}

fn sorted(n: &mut NodeCx<'_>, data: Value, ids: Value, count_of: Option<Value>, share: Share) -> Result<Value> {
    let count = match count_of {
        Some(count) => scalar(n, count)?,
        None => count(n, ids)?,
    };
    let sum = unsorted(n, data, ids, count, Fold::Sum)?;
    if share == Share::Sum {
        return Ok(sum);
    }
    let (one, ids_shape) = (n.scalar_like(data, 1.0)?, n.shape_of(ids)?);
    let ones = n.stretch(one, ids_shape)?;
    let rows = unsorted(n, ones, ids, count, Fold::Sum)?;
    let rows = n.max(rows, one)?;
    let rows = if share == Share::SqrtN { n.sqrt(rows)? } else { rows };
    let behind: Vec<i64> = (1..n.known_rank(data)? as i64).collect();
    let rows = if behind.is_empty() { rows } else { n.with_axes(rows, &behind)? };
    let y = super::common::division::divide(n, sum, rows)?;
    n.convert(y, n.ty(data))
}

