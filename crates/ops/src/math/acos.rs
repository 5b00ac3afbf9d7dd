//! Acos: the arc cosine. Outside of [-1, 1] floats give NaN and integers the lowest value; integers round.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Arc cosine.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Acos;

impl Op for Acos {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, f64::acos)
    }
}
