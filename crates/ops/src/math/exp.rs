//! Exp: `y = e^x`. Integers are cut, not rounded.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Exponential function.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Exp;

impl Op for Exp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, f64::exp)
    }
}
