//! Roll: shifts elements along axes, and what leaves at one end enters at the other. An axis may be listed several times;
//! its shifts add up. A scalar shift holds for all listed axes.

use super::axes::axes_input;
use super::view::map_axes;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, OrderCx, Reordered};
use carafe_tensor::Dim;

/// Shifts cyclically.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 7, inputs = "data, shift, axes", moves = "0")]
pub struct Roll;

impl Op for Roll {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for i in [1, 2] {
            cx.require_integer(i)?;
            cx.require_rank(i, &[0, 1])?;
        }
        if cx.rank(1) == Some(1) {
            let axes = if cx.rank(2) == Some(0) { Dim::known(1) } else { cx.dim(2, 0) };
            let fits = cx.dim(1, 0).compatible(axes);
            cx.require(fits, || {
                format!("shift and axes must have one length, found [{}] and [{}]", cx.shape(1), cx.shape(2))
            })?;
        }
        if let Some(rank) = cx.rank(0) {
            axes_input(cx, 2, rank)?;
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0);
        let (shifts, axes) = (cx.ints(1)?, cx.ints(2)?);
        let mut total = vec![0i64; shape.len()];
        for (i, &axis) in axes.iter().enumerate() {
            let axis = normalize_axis(axis, shape.len())?;
            let shift = if shifts.len() == 1 { shifts[0] } else { shifts.get(i).copied().unwrap_or(0) };
            let n = (shape[axis] as i64).max(1);
            total[axis] = (total[axis] + shift.rem_euclid(n)) % n;
        }
        let out = map_axes(cx.input(0), shape, shape, None, |axis, i| {
            let n = shape[axis];
            Some((i + n - total[axis] as usize) % n)
        })?;
        cx.set(0, out)
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(2, cx.axes(2)?)] })
    }
}
