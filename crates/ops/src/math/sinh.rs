//! Sinh: the hyperbolic sine. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Hyperbolic sine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Sinh;

impl Op for Sinh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::sinh)
    }
}
