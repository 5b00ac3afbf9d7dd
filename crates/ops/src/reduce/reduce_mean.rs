//! ReduceMean: the mean over some axes; 0 over no elements. An integer sum wraps into its type before it is divided, and the
//! quotient is cut.

use super::reduction::{self, Step};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// Mean over axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axes", reduces)]
pub struct ReduceMean {
    /// Whether folded dimensions stay as 1.
    #[attr(default = false)]
    pub keep_dims: bool,
}

impl Op for ReduceMean {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        reduction::infer(cx, self.keep_dims)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        let step = Step { first: (0.0, 0), float: |a, x| a + x, int: |a, x| a + x };
        reduction::eval_with(cx, step, mean, |s, n| if n == 0 { 0 } else { wrap(s, ty) / n as i128 })
    }
}

fn mean(sum: f64, n: usize) -> f64 {
    if n == 0 { 0.0 } else { sum / n as f64 }
}

/// The value an integer type keeps of a sum.
fn wrap(sum: i128, ty: ElementType) -> i128 {
    let rest = sum.rem_euclid(1 << ty.bits());
    if ty.is_signed() && rest >= 1 << (ty.bits() - 1) { rest - (1 << ty.bits()) } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_wraps_into_its_type() {
        assert_eq!(wrap(2 * i128::from(i32::MAX), ElementType::I32), -2);
        assert_eq!(wrap(300, ElementType::U8), 44);
        assert_eq!(wrap(-5, ElementType::I64), -5);
        assert_eq!(wrap(8, ElementType::I4), -8);
    }
}
