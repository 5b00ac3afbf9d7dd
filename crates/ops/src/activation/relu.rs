//! Relu: negatives become 0. NaN and -0 pass.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Positive part.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, xml = "ReLU", elementwise, keeps_zero, idempotent)]
pub struct Relu;

impl Op for Relu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, |x| if x < 0.0 { 0.0 } else { x }, |i| i.max(0))
    }
}
