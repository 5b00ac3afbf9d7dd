//! ReduceL1: the sum of absolute values over some axes. Over no axes it is still the absolute value.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Sum of absolute values over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, inputs = "data, axes", reduces)]
pub struct ReduceL1 {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceL1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer(cx, self.keep_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let step = Step { first: (0.0, 0), float: |a, x: f64| a + x.abs(), int: |a, x: i128| a + x.abs() };
        reduction::eval(cx, step)
    }
}
