//! Acosh: the inverse hyperbolic cosine, NaN below 1. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Inverse hyperbolic cosine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 4, elementwise)]
pub struct Acosh;

impl Op for Acosh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::acosh)
    }
}
