//! HSigmoid: `y = min(max(x + 3, 0), 6) / 6`.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Sigmoid made of three straight lines.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 5, elementwise)]
pub struct HSigmoid;

impl Op for HSigmoid {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, hsigmoid)
    }
}

pub(crate) fn hsigmoid(x: f64) -> f64 {
    (x + 3.0).clamp(0.0, 6.0) / 6.0
}
