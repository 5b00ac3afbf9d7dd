//! SpaceToBatch: pads with zeros, then moves blocks of the other axes into the batch; undoes BatchToSpace.

use super::axes::of_rank;
use super::batch_to_space::{blocks, margin, quotient, sizes};
use super::view::{View, map_axes};
use carafe_graph::{EvalCx, InferCx, Op, Result, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// `[B, D...]` becomes `[B * product(block), (D + pads) / block...]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 2, inputs = "data, block_shape, pads_begin, pads_end", moves = "0")]
pub struct SpaceToBatch;

impl Op for SpaceToBatch {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let Some((dims, blocks)) = blocks(cx)? else {
            let shape = cx.rank(0).map_or(PartialShape::dynamic(), |r| of_rank(Dim::from(r)));
            cx.set(0, cx.ty(0), shape);
            return Ok(());
        };
        let mut out = vec![blocks.iter().fold(dims[0], |p, &b| p.mul(b))];
        let (begins, ends) = (margin(cx, 2, dims.len())?, margin(cx, 3, dims.len())?);
        for axis in 1..dims.len() {
            let padded = dims[axis].add(begins[axis].add(ends[axis]));
            out.push(quotient(cx, padded, blocks[axis], "padded positions")?);
        }
        cx.set(0, cx.ty(0), PartialShape::new(out));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let shape = cx.shape(0).to_vec();
        let rank = shape.len();
        let (blocks, begins) = (sizes(cx, 1)?, sizes(cx, 2)?);
        let mut padded = vec![shape[0]];
        padded.extend((1..rank).map(|axis| out[axis] * blocks[axis]));
        let data = map_axes(cx.input(0), &shape, &padded, None, |axis, i| {
            i.checked_sub(begins[axis]).filter(|&from| from < shape[axis])
        })?;
        // [batch, dim, block, dim, block...] becomes [blocks..., batch, dims...].
        let mut split = vec![shape[0]];
        for axis in 1..rank {
            split.extend([out[axis], blocks[axis]]);
        }
        let order: Vec<usize> =
            (1..rank).map(|axis| 2 * axis).chain([0]).chain((1..rank).map(|axis| 2 * axis - 1)).collect();
        let moved = View::whole(&split).permuted(&order).copy(&data)?.reshaped(&out)?;
        cx.set(0, moved)
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        // Blocks are counted in the order of the axes that have some.
        let blocks = (cx.ints)(1)?;
        let in_place = cx.order.first() == Some(&0) && cx.keeps_order_of(|a| blocks.get(a) != Some(&1));
        let ints = vec![(1, cx.list(1)?), (2, cx.list(2)?), (3, cx.list(3)?)];
        in_place.then(|| Reordered { op: Box::new(self.clone()), data: 1, ints })
    }
}
