//! ReduceLogicalAnd: whether all are true over some axes; true over no elements.

use super::reduction;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// All over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
pub struct ReduceLogicalAnd {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceLogicalAnd {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer_logical(cx, self.keep_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        reduction::eval_logical(cx, true, |a, x| a && x)
    }
}
