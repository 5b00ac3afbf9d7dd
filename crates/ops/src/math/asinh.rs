//! Asinh: the inverse hyperbolic sine. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Inverse hyperbolic sine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise, keeps_zero)]
pub struct Asinh;

impl Op for Asinh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::asinh)
    }
}
