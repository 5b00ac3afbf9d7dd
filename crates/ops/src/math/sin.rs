//! Sin: the sine. Integers are cut, which leaves nothing but 0; those of Cos round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Sine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Sin;

impl Op for Sin {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, f64::sin)
    }
}
