//! Log: the natural logarithm. Integers are cut, not rounded.

use super::unary;
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Natural logarithm.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, elementwise)]
pub struct Log;

impl Op for Log {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_truncated(cx, f64::ln)
    }
}
