//! Tan: the tangent. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Tangent.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Tan;

impl Op for Tan {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::tan)
    }
}
