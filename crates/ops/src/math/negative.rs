//! Negative: `y = -x`. Unsigned and lowest values wrap.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Opposite number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero, involution)]
pub struct Negative;

impl Op for Negative {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, |x| -x, |i| -i)
    }
}
