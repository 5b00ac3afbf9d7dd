//! Cosh: the hyperbolic cosine. Integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Hyperbolic cosine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Cosh;

impl Op for Cosh {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::cosh)
    }
}
