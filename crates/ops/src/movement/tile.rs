//! Tile: repeats the data along each axis. Shape and repeats are aligned at the last axis; what is missing counts as 1.

use super::axes::of_rank;
use super::view::map_axes;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Repeats the data a number of times along each axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, repeats", moves = "0", shape_inputs = "1")]
pub struct Tile;

impl Op for Tile {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        cx.require_rank(1, &[1])?;
        let shape = match (cx.shape(0).dims(), cx.dims_value(1)) {
            (Some(dims), Some(repeats)) => {
                let rank = dims.len().max(repeats.len());
                let at = |v: &[Dim], i: usize| (i + v.len()).checked_sub(rank).map_or(Dim::known(1), |own| v[own]);
                // A negative number of repeats gives nothing.
                PartialShape::new((0..rank).map(|i| at(dims, i).mul(at(&repeats, i).clamp_shape())))
            }
            (Some(dims), None) => match cx.dim(1, 0).size() {
                Some(n) => of_rank(Dim::from(n.max(dims.len()))),
                None => PartialShape::dynamic(),
            },
            (None, _) => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let mut shape = vec![1; out.len().saturating_sub(cx.shape(0).len())];
        shape.extend(cx.shape(0));
        let tiled = map_axes(cx.input(0), &shape, &out, None, |axis, i| i.checked_rem(shape[axis]))?;
        cx.set(0, tiled)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        let (repeats, rank) = (cx.ints(1), cx.rank(0));
        let kept = repeats.is_some_and(|r| r.len() < rank || (r.len() == rank && r[0] == 1));
        if kept { Ok(()) } else { Err("it repeats rows".into()) }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, cx.list(1)?)] })
    }
}
