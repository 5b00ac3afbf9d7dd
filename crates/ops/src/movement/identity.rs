//! Identity: the input as it is.

use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Passes its input on.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 16, moves = "0", elementwise)]
pub struct Identity;

impl Op for Identity {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.pass_through(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let same = cx.input(0).clone();
        cx.set(0, same)
    }
}
