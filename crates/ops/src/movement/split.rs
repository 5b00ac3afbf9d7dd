//! Split: equal parts along an axis, one output each.

use super::axes::{axis_input, of_rank};
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// More outputs than this are refused; the count comes from a file.
const MAX_OUTPUTS: usize = 1 << 20;

/// Cuts the data into equal parts along an axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axis", outputs = "outputs...", moves = "0")]
pub struct Split {
    /// Number of parts and of outputs; the axis must be divisible by it.
    pub num_splits: usize,
}

impl Op for Split {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let n = self.num_splits;
        cx.require((1..=MAX_OUTPUTS).contains(&n), || format!("attribute `num_splits` must be positive, found {n}"))?;
        cx.require_integer(1)?;
        cx.require_rank(1, &[0])?;
        let shape = match cx.shape(0).dims() {
            Some(dims) => match axis_input(cx, 1, dims.len())? {
                Some(axis) => {
                    let mut dims = dims.to_vec();
                    dims[axis] = part(dims[axis], n as i64).ok_or_else(|| {
                        cx.fail(format!("axis {axis} of {} is not divisible into {n} parts", cx.shape(0).dim(axis)))
                    })?;
                    PartialShape::new(dims)
                }
                None => of_rank(Dim::from(dims.len())),
            },
            None => PartialShape::dynamic(),
        };
        for output in 0..n {
            cx.set(output, cx.ty(0), shape.clone());
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let axis = normalize_axis(cx.int(1)?, shape.len())?;
        let len = shape[axis] / self.num_splits;
        for output in 0..self.num_splits {
            let part = View::whole(&shape).sliced(axis, output * len, 1, len).copy(cx.input(0))?;
            cx.set(output, part)?;
        }
        Ok(())
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, cx.axes(1)?)] })
    }
}

fn part(dim: Dim, n: i64) -> Option<Dim> {
    match dim.get() {
        Some(d) => (d % n == 0).then(|| Dim::known(d / n)),
        None if n == 1 => Some(dim),
        None => {
            let (low, high) = (dim.ceil_div(n).min(), dim.floor_div(n).max());
            high.is_none_or(|h| low <= h).then(|| Dim::range(low, high))
        }
    }
}
