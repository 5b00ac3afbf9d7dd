//! Mish: `y = x * tanh(ln(1 + e^x))`.

use super::soft_plus::softplus;
use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// `x` times the hyperbolic tangent of SoftPlus.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise, keeps_zero)]
pub struct Mish;

impl Op for Mish {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_float(cx, |x| x * softplus(x).tanh())
    }
}
