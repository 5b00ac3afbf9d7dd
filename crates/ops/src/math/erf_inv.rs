//! ErfInv: the inverse of the Gauss error function; infinite at -1 and 1, NaN outside.

use super::{special, unary};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Inverse of the Gauss error function.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 17, elementwise)]
pub struct ErfInv;

impl Op for ErfInv {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_float(cx, special::erf_inv)
    }
}
