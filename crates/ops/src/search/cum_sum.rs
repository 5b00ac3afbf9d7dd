//! CumSum: running sums along an axis. Floats are summed in double precision and rounded once; integers wrap.

use crate::index::around;
use crate::movement::axes::axis_input;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};
use carafe_tensor::Number;

/// Sum of all elements up to each one.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "data, axis?", keeps_shape)]
pub struct CumSum {
    /// Leaves the element itself out.
    #[attr(default = false)]
    pub exclusive: bool,
    /// Runs from the end.
    #[attr(default = false)]
    pub reverse: bool,
}

impl Op for CumSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        if let Some(rank) = cx.rank(0) {
            cx.require(rank > 0, || "data must not be a scalar".to_string())?;
            if cx.has(1) {
                axis_input(cx, 1, rank)?;
            }
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let axis = normalize_axis(if cx.has(1) { cx.int(1)? } else { 0 }, shape.len())?;
        if cx.ty(0).is_float() {
            let mut data = cx.get::<f64>(0)?.into_owned();
            self.run(&mut data, around(&shape, axis));
            cx.put(0, &shape, data)
        } else {
            with_number!(cx.ty(0), T => {
                let mut data = cx.get::<T>(0)?.into_owned();
                self.run(&mut data, around(&shape, axis));
                cx.put(0, &shape, data)
            })
        }
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let axis = cx.axes(1)?;
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, axis)] })
    }
}

impl CumSum {
    fn run<T: Number>(&self, data: &mut [T], (outer, n, inner): (usize, usize, usize)) {
        for o in 0..outer {
            for k in 0..inner {
                let mut sum = T::zero();
                for i in 0..n {
                    let i = if self.reverse { n - 1 - i } else { i };
                    let x = &mut data[(o * n + i) * inner + k];
                    let next = sum.wrapping_add(*x);
                    *x = if self.exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
    }
}
