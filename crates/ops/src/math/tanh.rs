//! Tanh: the hyperbolic tangent. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Hyperbolic tangent.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Tanh;

impl Op for Tanh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::tanh)
    }
}
