//! Erf: the Gauss error function. Integers round.

use super::{special, unary};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Gauss error function.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise, keeps_zero)]
pub struct Erf;

impl Op for Erf {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_rounded(cx, special::erf)
    }
}
