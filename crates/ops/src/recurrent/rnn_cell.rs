//! RNNCell: one step of a plain recurrent network, `H' = f(X W + H R + B)`.

use super::activation::Activation;
use super::cell::Kind;
use super::sequence::eval_cell;
use super::shapes::infer_cell;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// One step with a single gate.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "RNNCell", since = 1, inputs = "X, initial_hidden_state, W, R, B?", outputs = "Ho", also = "experimental, extension")]
pub struct RnnCell {
    /// Length of the hidden state.
    pub hidden_size: u64,
    /// The function of the gate.
    #[attr(default = vec!["tanh".to_string()])]
    pub activations: Vec<String>,
    /// First parameter of the function, where it has one.
    #[attr(default = vec![])]
    pub activations_alpha: Vec<f32>,
    /// Second parameter of the function, where it has one.
    #[attr(default = vec![])]
    pub activations_beta: Vec<f32>,
    /// Limit of what enters the function; 0 is none.
    #[attr(default = 0.0)]
    pub clip: f32,
}

impl Op for RnnCell {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_cell(cx, self.kind()?, None)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_cell(cx, self.kind()?, self.clip, None, None)
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        cost::recurrent(inputs, 2, 1)
    }
}

impl RnnCell {
    fn kind(&self) -> Result<Kind> {
        rnn_kind(&self.activations, &self.activations_alpha, &self.activations_beta)
    }
}

pub(super) fn rnn_kind(names: &[String], alpha: &[f32], beta: &[f32]) -> Result<Kind> {
    let [f] = Activation::list(names, alpha, beta, ["tanh"])?;
    Ok(Kind::Rnn { f })
}
