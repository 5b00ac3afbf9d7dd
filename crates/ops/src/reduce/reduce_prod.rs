//! ReduceProd: the product over some axes; 1 over none. Integers wrap.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// Product over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
pub struct ReduceProd {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceProd {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer_dims(cx, self.keep_dims, Dim::known(1), Dim::mul)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let step = Step { first: (1.0, 1), float: |a, x| a * x, int: |a: i128, x| a.wrapping_mul(x) };
        reduction::eval(cx, step)
    }
}
