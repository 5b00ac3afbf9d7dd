//! Elu: `y = x` above 0, else `alpha * (e^x - 1)`.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Exponential linear unit.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Elu {
    /// What the negative side falls to, with its sign turned.
    pub alpha: f64,
}

impl Op for Elu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, |x| elu(x, self.alpha))
    }
}

pub(crate) fn elu(x: f64, alpha: f64) -> f64 {
    if x < 0.0 { alpha * x.exp_m1() } else { x }
}
