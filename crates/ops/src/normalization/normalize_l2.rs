//! NormalizeL2: divides by the Euclidean norm over the axes of input 1. Without axes every element is its own group, so
//! the result is its sign, as far as `eps` lets it.

use super::moments::{Groups, check_axes_input, normalize_axes};
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, OrderCx, Reordered};

carafe_graph::attr_enum! {
    /// How `eps` keeps the norm from 0.
    pub enum EpsMode {
        /// It is added to the sum of squares.
        Add = "add",
        /// The sum of squares is at least `eps`.
        Max = "max",
    }
}

/// Divides by the root of the sum of squares over the given axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", keeps_shape)]
pub struct NormalizeL2 {
    /// Keeps the norm from 0.
    pub eps: f32,
    /// How it does.
    pub eps_mode: EpsMode,
}

impl Op for NormalizeL2 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        check_axes_input(cx, 1)?;
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let axes = normalize_axes(&cx.ints(1)?, shape.len())?;
        let mut data = cx.get::<f64>(0)?.into_owned();
        let groups = Groups::over(&shape, &axes);
        let eps = f64::from(self.eps);
        let mut norms = groups.sums(&data, |x, _| x * x);
        norms.iter_mut().for_each(|sum| {
            *sum = match self.eps_mode {
                EpsMode::Add => *sum + eps,
                EpsMode::Max => sum.max(eps),
            }
            .sqrt();
        });
        for (x, group) in data.iter_mut().zip(groups.of_elements()) {
            *x /= norms[group];
        }
        cx.put(0, &shape, data)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, cx.axes(1)?)] })
    }
}
