//! IsFinite: neither infinite nor NaN.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Tells which elements are finite.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 10, elementwise)]
pub struct IsFinite;

impl Op for IsFinite {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_predicate(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::ask(cx, f64::is_finite)
    }
}
