//! GRN: divides every element by the root of the summed squares of all channels at its place.

use super::moments::Groups;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Global response normalization over dimension 1: `x / sqrt(sum of squares + bias)`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "GRN", since = 1, rows = "0")]
pub struct Grn {
    /// Added to the sum of squares.
    pub bias: f32,
}

impl Op for Grn {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require_rank(0, &[2, 3, 4])?;
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let mut data = cx.get::<f64>(0)?.into_owned();
        let groups = Groups::over(&shape, &[1]);
        let sums = groups.sums(&data, |x, _| x * x);
        for (x, group) in data.iter_mut().zip(groups.of_elements()) {
            *x /= (sums[group] + f64::from(self.bias)).sqrt();
        }
        cx.put(0, &shape, data)
    }
}
