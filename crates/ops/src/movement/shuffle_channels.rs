//! ShuffleChannels: sees an axis as `[group, size / group]`, swaps the two and joins them again.

use super::view::View;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};

/// Interleaves the groups of an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, moves = "0")]
pub struct ShuffleChannels {
    /// Axis to shuffle; negative counts from the end.
    #[attr(default = 1)]
    pub axis: i64,
    /// Number of groups; the axis must be divisible by it.
    #[attr(default = 1)]
    pub group: i64,
}

impl Op for ShuffleChannels {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(self.group >= 1, || format!("attribute `group` must be at least 1, found {}", self.group))?;
        if let Some(rank) = cx.rank(0) {
            cx.require(rank >= 1, || "data must have at least 1 axis, found a scalar".to_string())?;
            let axis = normalize_axis(self.axis, rank)?;
            let dim = cx.dim(0, axis);
            cx.require(dim.get().is_none_or(|n| n % self.group == 0), || {
                format!("axis {axis} of {dim} is not divisible into {} groups", self.group)
            })?;
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let (outer, n, inner) = around(&shape, normalize_axis(self.axis, shape.len())?);
        let group = self.group as usize;
        let grouped = View::whole(&[outer, group, n / group, inner]).permuted(&[0, 2, 1, 3]);
        let out = grouped.copy(cx.input(0))?.reshaped(&shape)?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(ShuffleChannels { axis: cx.axis(self.axis)?, group: self.group }), data: 1, ints: vec![] })
    }
}
