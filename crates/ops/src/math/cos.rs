//! Cos: the cosine. Integers round, unlike those of Sin.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Cosine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Cos;

impl Op for Cos {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::cos)
    }
}
