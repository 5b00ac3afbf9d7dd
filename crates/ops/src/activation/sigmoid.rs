//! Sigmoid: `y = 1 / (1 + e^-x)`. On integers `e^-x` is cut to an integer first, so 0 gives 0 and 1 gives 1.

use crate::math::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Logistic function.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Sigmoid;

impl Op for Sigmoid {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        if cx.ty(0).is_float() {
            unary::map_float(cx, sigmoid)
        } else {
            unary::map_float(cx, |x| (1.0 / (1.0 + (-x).exp().trunc())).trunc())
        }
    }
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
