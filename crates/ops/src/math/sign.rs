//! Sign: -1, 0 or 1. NaN stays NaN and -0 becomes 0.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Sign of a number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero, idempotent)]
pub struct Sign;

impl Op for Sign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_number(cx, |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x + 0.0 }, i128::signum)
    }
}
