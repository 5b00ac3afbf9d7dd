//! Swish: `y = x / (1 + e^(-beta * x))`, where `beta` is an optional scalar input and 1 when absent.

use super::sigmoid::sigmoid;
use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// `x` times the sigmoid of `beta * x`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, inputs = "data, beta?", elementwise, keeps_zero)]
pub struct Swish;

impl Op for Swish {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        let mut ty = cx.ty(0);
        if cx.has(1) {
            ty = cx.same_type(&[0, 1])?;
            cx.require_rank(1, &[0])?;
        }
        cx.set(0, ty, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let beta = if cx.has(1) { cx.float(1)? } else { 1.0 };
        unary::map_float(cx, |x| x * sigmoid(beta * x))
    }
}
