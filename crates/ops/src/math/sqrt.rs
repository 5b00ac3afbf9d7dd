//! Sqrt: the square root. Integers round, so the root of 3 is 2.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Square root.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Sqrt;

impl Op for Sqrt {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::sqrt)
    }
}
