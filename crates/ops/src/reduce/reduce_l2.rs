//! ReduceL2: the root of the sum of squares over some axes. Over no axes it is still the absolute value; integers are cut.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Root of the sum of squares over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, inputs = "data, axes", reduces)]
pub struct ReduceL2 {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceL2 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer(cx, self.keep_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let step = Step { first: (0.0, 0), float: |a, x| a + x * x, int: |a: i128, x: i128| a.wrapping_add(x.wrapping_mul(x)) };
        reduction::eval_with(cx, step, |s, _| s.sqrt(), |s, _| (s as f64).sqrt() as i128)
    }
}
