//! HSwish: `y = x * min(max(x + 3, 0), 6) / 6`. Below -3 the result is -0, and NaN at minus infinity.

use super::h_sigmoid::hsigmoid;
use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// `x` times HSigmoid.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise, keeps_zero)]
pub struct HSwish;

impl Op for HSwish {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, |x| x * hsigmoid(x))
    }
}
