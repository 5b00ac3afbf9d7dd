//! BatchToSpace: moves blocks of the batch into the other axes, then crops. The block of the second axis varies slowest
//! within the batch.

use super::axes::of_rank;
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape, Tensor};

/// `[B, D...]` becomes `[B / product(block), D * block - crops...]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 2, inputs = "data, block_shape, crops_begin, crops_end", moves = "0")]
pub struct BatchToSpace;

impl Op for BatchToSpace {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let Some((dims, blocks)) = blocks(cx)? else {
            let shape = cx.rank(0).map_or(PartialShape::dynamic(), |r| of_rank(Dim::from(r)));
            cx.set(0, cx.ty(0), shape);
            return Ok(());
        };
        let volume = blocks.iter().fold(Dim::known(1), |p, &b| p.mul(b));
        let mut out = vec![quotient(cx, dims[0], volume, "batch")?];
        let (begins, ends) = (margin(cx, 2, dims.len())?, margin(cx, 3, dims.len())?);
        for axis in 1..dims.len() {
            let whole = dims[axis].mul(blocks[axis]);
            let left = whole.sub(begins[axis].add(ends[axis]));
            cx.require(left.max().is_none_or(|m| m >= 0), || {
                format!("axis {axis} of {whole} cannot be cropped by {} and {}", begins[axis], ends[axis])
            })?;
            out.push(left.clamp_shape());
        }
        cx.set(0, cx.ty(0), PartialShape::new(out));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let blocks = sizes(cx, 1)?;
        let begins = sizes(cx, 2)?;
        let shape = cx.shape(0);
        let rank = shape.len();
        // [blocks..., batch, dims...] becomes [batch, dim, block, dim, block...].
        let mut split = blocks[1..].to_vec();
        split.push(out[0]);
        split.extend(&shape[1..]);
        let mut order = vec![rank - 1];
        let mut joined = vec![out[0]];
        for axis in 1..rank {
            order.extend([rank - 1 + axis, axis - 1]);
            joined.push(shape[axis] * blocks[axis]);
        }
        let moved: Tensor = View::whole(&split).permuted(&order).copy(cx.input(0))?.reshaped(&joined)?;
        let cropped = (1..rank).fold(View::whole(&joined), |view, axis| view.sliced(axis, begins[axis], 1, out[axis]));
        let out = cropped.copy(&moved)?;
        cx.set(0, out)
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        // Blocks are counted in the order of the axes that have some.
        let blocks = (cx.ints)(1)?;
        let in_place = cx.order.first() == Some(&0) && cx.keeps_order_of(|a| blocks.get(a) != Some(&1));
        let ints = vec![(1, cx.list(1)?), (2, cx.list(2)?), (3, cx.list(3)?)];
        in_place.then(|| Reordered { op: Box::new(self.clone()), data: 1, ints })
    }
}

/// Data dimensions and block sizes, both checked; `None` when one of them is not known.
pub(super) fn blocks<'a>(cx: &InferCx<'a>) -> Result<Option<(&'a [Dim], Vec<Dim>)>> {
    for i in 1..4 {
        cx.require_integer(i)?;
        cx.require_rank(i, &[1])?;
    }
    let Some(dims) = cx.shape(0).dims() else {
        return Ok(None);
    };
    cx.require(dims.len() >= 2, || format!("data must have at least 2 axes, found [{}]", cx.shape(0)))?;
    for i in 1..4 {
        let n = cx.dim(i, 0);
        cx.require(n.contains(dims.len() as i64), || {
            format!("{} must have {} entries, found {n}", cx.port_name(i), dims.len())
        })?;
    }
    let Some(blocks) = cx.dims_value(1) else {
        return Ok(None);
    };
    for (axis, block) in blocks.iter().enumerate() {
        let fits = if axis == 0 { block.contains(1) } else { block.max().is_none_or(|m| m >= 1) };
        let wanted = if axis == 0 { "exactly 1" } else { "at least 1" };
        cx.require(fits, || format!("block {axis} must be {wanted}, found {block}"))?;
    }
    let positive = |b: Dim| b.merge(Dim::range(1, None)).unwrap_or(b);
    Ok(Some((dims, blocks.into_iter().map(positive).collect())))
}

/// Crops or pads of an input: not negative, none on the batch.
pub(super) fn margin(cx: &InferCx<'_>, input: usize, rank: usize) -> Result<Vec<Dim>> {
    let Some(values) = cx.dims_value(input) else {
        return Ok(vec![Dim::ANY; rank]);
    };
    for (axis, v) in values.iter().enumerate() {
        let fits = if axis == 0 { v.contains(0) } else { v.max().is_none_or(|m| m >= 0) };
        let wanted = if axis == 0 { "0" } else { "at least 0" };
        cx.require(fits, || format!("{} must be {wanted} at {axis}, found {v}", cx.port_name(input)))?;
    }
    Ok(values.into_iter().map(Dim::clamp_shape).collect())
}

/// `dim / by` without a rest; `by` is at least 1.
pub(super) fn quotient(cx: &InferCx<'_>, dim: Dim, by: Dim, what: &str) -> Result<Dim> {
    let Some(by) = by.get() else {
        return Ok(Dim::range(0, dim.max()));
    };
    super::depth_to_space::divide(cx, dim, by, what)
}

/// An input of non-negative numbers.
pub(super) fn sizes(cx: &EvalCx<'_>, input: usize) -> Result<Vec<usize>> {
    let bad = |n: &i64| cx.fail(format!("input {input} holds {n}"));
    cx.ints(input)?.iter().map(|n| usize::try_from(*n).map_err(|_| bad(n))).collect()
}
