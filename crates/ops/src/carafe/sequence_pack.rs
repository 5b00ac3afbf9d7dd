//! SequencePack: tensors as one packed sequence. A sequence as an element, itself packed, makes a sequence of sequences.

use super::sequence::set_sequence;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Tensor, pack_sequence};

/// A sequence of its inputs, in order.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "items...", outputs = "sequence")]
pub struct SequencePack;

impl Op for SequencePack {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.same_type(&(0..cx.n_inputs()).collect::<Vec<_>>())?;
        set_sequence(cx, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let items: Vec<Tensor> = (0..cx.n_inputs()).map(|i| cx.input(i).clone()).collect();
        cx.set(0, pack_sequence(&items)?)
    }
}
