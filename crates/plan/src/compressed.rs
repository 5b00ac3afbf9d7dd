//! Weights that stay compressed while a model runs.

use carafe_graph::{EvalEnv, Model, NodeId, Result, eval_op};
use carafe_ops::carafe::Decompress;
use carafe_tensor::Tensor;

/// A matrix that the model stores compressed: `(data - zero) * scale`, of another shape.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// As the model stores it, with an axis for groups where there are some.
    pub data: Tensor,
    /// What the data is multiplied with, f32; it broadcasts into the data.
    pub scale: Tensor,
    /// What is taken away from the data before, f32; it broadcasts into the data.
    pub zero: Option<Tensor>,
    op: Decompress,
}

impl Compressed {
    /// What a node gives, when it decompresses constants.
    pub(crate) fn of(model: &Model, id: NodeId) -> Option<Compressed> {
        let op = model.op_at::<Decompress>(id)?.clone();
        let constant = |i: usize| model.constant_of(model.input(id, i)?).cloned();
        let zero = match model.input(id, 2) {
            Some(_) => Some(constant(2)?),
            None => None,
        };
        Some(Compressed { data: constant(0)?, scale: constant(1)?, zero, op })
    }

    /// The constants that it is made of.
    pub fn tensors(&self) -> Vec<&Tensor> {
        [&self.data, &self.scale].into_iter().chain(&self.zero).collect()
    }

    /// The numbers that they stand for.
    pub(crate) fn numbers(&self) -> Result<Tensor> {
        let inputs = self.tensors().into_iter().cloned().collect();
        let mut all = eval_op("weights", NodeId(u32::MAX), &self.op, inputs, &mut EvalEnv::default())?;
        Ok(all.swap_remove(0))
    }
}
