//! Numbers that lie on equal steps. A value of floats whose numbers all do can be stored as bytes and loses nothing; the model
//! goes on to say f32.

use carafe_graph::{EvalEnv, NodeId, Result, eval_op};
use carafe_ops::carafe::Dequantize;
use carafe_tensor::Tensor;

/// The steps of a value: its numbers are `(byte - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Distance of two steps.
    pub scale: f32,
    /// The byte that stands for zero.
    pub zero: u8,
}

/// Weights that the model stores as integers.
#[derive(Clone, Debug)]
pub struct Integers {
    /// The integers, i8.
    pub data: Tensor,
    /// What they are multiplied with: f32 of the same rank, with at most one axis of more than one element.
    pub scale: Tensor,
}

impl Integers {
    /// The numbers that they stand for.
    pub(crate) fn numbers(&self) -> Result<Tensor> {
        let inputs = vec![self.data.clone(), self.scale.clone()];
        let mut all = eval_op("weights", NodeId(u32::MAX), &Dequantize {}, inputs, &mut EvalEnv::default())?;
        Ok(all.swap_remove(0))
    }
}
