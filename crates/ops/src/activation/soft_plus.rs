//! SoftPlus: `y = ln(1 + e^x)`, which is x itself before `e^x` overflows.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Smooth positive part.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise)]
pub struct SoftPlus;

impl Op for SoftPlus {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_float(cx, softplus)
    }
}

pub(crate) fn softplus(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp().ln_1p() }
}
