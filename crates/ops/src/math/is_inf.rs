//! IsInf: where a number is infinite, of either sign or only of the chosen ones.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Tells which elements are infinite.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 10, elementwise)]
pub struct IsInf {
    /// Whether minus infinity counts.
    #[attr(default = true)]
    pub detect_negative: bool,
    /// Whether plus infinity counts.
    #[attr(default = true)]
    pub detect_positive: bool,
}

impl Op for IsInf {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_predicate(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::ask(cx, |x| (x == f64::INFINITY && self.detect_positive) || (x == f64::NEG_INFINITY && self.detect_negative))
    }
}
