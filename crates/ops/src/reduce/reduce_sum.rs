//! ReduceSum: the sum over some axes; 0 over none. Integers wrap.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// Sum over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
pub struct ReduceSum {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer_dims(cx, self.keep_dims, Dim::known(0), Dim::add)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let step = Step { first: (0.0, 0), float: |a, x| a + x, int: |a, x| a + x };
        reduction::eval(cx, step)
    }
}
