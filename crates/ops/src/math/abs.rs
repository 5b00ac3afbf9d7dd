//! Abs: `y = |x|`.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Absolute value.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero, idempotent)]
pub struct Abs;

impl Op for Abs {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, |x| x.abs(), |i| i.abs())
    }
}
