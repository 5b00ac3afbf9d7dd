//! LRN: divides every element by a power of the summed squares around it. An even `size` reaches as far as the odd one
//! below it, yet `alpha` is divided by the full `size` for each axis.

use super::moments::{check_axes_input, normalize_axes};
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx};

/// Local response normalization: `x / (bias + alpha / size^n * sum of squares in the window)^beta` over `n` axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "LRN", since = 1, inputs = "data, axes", keeps_shape)]
pub struct Lrn {
    /// Factor of the sum.
    pub alpha: f32,
    /// Exponent.
    pub beta: f32,
    /// Added to the sum.
    pub bias: f32,
    /// Width of the window.
    pub size: i64,
}

impl Op for Lrn {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require(self.size >= 1, || format!("attribute `size` must be at least 1, found {}", self.size))?;
        cx.require(cx.rank(0).is_none_or(|r| r >= 1), || "data must have at least rank 1, found a scalar".into())?;
        check_axes_input(cx, 1)?;
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let mut axes = normalize_axes(&cx.ints(1)?, shape.len())?;
        axes.sort_unstable();
        axes.dedup();
        let mut data = cx.get::<f64>(0)?.into_owned();
        let reach = usize::try_from((self.size - 1) / 2).unwrap_or(usize::MAX);
        let mut sums: Vec<f64> = data.iter().map(|x| x * x).collect();
        for &axis in &axes {
            sums = window_sums(&sums, &shape, axis, reach);
        }
        let alpha = f64::from(self.alpha) / (self.size as f64).powi(axes.len() as i32);
        for (x, sum) in data.iter_mut().zip(sums) {
            *x /= (f64::from(self.bias) + alpha * sum).powf(f64::from(self.beta));
        }
        cx.put(0, &shape, data)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
}

/// Sums of up to `reach` neighbours on each side along one axis.
fn window_sums(data: &[f64], shape: &[usize], axis: usize, reach: usize) -> Vec<f64> {
    let (outer, n, inner) = around(shape, axis);
    let mut out = vec![0.0; data.len()];
    for o in 0..outer {
        for i in 0..n {
            let row = &mut out[(o * n + i) * inner..][..inner];
            for j in i.saturating_sub(reach)..n.min(i.saturating_add(reach).saturating_add(1)) {
                for (sum, x) in row.iter_mut().zip(&data[(o * n + j) * inner..][..inner]) {
                    *sum += x;
                }
            }
        }
    }
    out
}
