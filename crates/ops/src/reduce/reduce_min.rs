//! ReduceMin: the smallest over some axes. NaN never wins; no elements at all give plus infinity or the highest integer.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use crate::math::unary::integer_range;
use carafe_tensor::Dim;

/// Smallest over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
pub struct ReduceMin {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceMin {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer_dims(cx, self.keep_dims, Dim::known(i64::MAX), Dim::min_of)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let step = Step { first: (f64::INFINITY, integer_range(cx.ty(0)).1), float: |a, x| if x < a { x } else { a }, int: i128::min };
        reduction::eval(cx, step)
    }
}
