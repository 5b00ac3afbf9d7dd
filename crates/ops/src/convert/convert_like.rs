//! ConvertLike: Convert to the element type of the second input, whose values do not matter.

use super::casting;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Changes the element type to that of another tensor.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, like", elementwise)]
pub struct ConvertLike;

impl Op for ConvertLike {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        casting::infer(cx, 0, 0, cx.ty(1))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        casting::eval(cx, 0, 0)
    }
}
