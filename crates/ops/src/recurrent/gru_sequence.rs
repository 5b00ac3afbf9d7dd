//! GRUSequence: a GRU cell run over time, forwards, backwards or both. Backwards starts at each row's own length.

use super::Direction;
use super::cell::Kind;
use super::gru_cell::{default_activations, gru_kind};
use super::sequence::eval_sequence;
use super::shapes::infer_sequence;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// GRU over a batch of sequences: all hidden states, and the last one.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "GRUSequence",
    since = 5,
    inputs = "X, initial_hidden_state, sequence_lengths, W, R, B",
    outputs = "Y, Ho", heavy)]
pub struct GruSequence {
    /// Length of the hidden state.
    pub hidden_size: u64,
    /// Functions of the gates and of the new value.
    #[attr(default = default_activations())]
    pub activations: Vec<String>,
    /// First parameter of each function, where it has one.
    #[attr(default = vec![])]
    pub activations_alpha: Vec<f32>,
    /// Second parameter of each function, where it has one.
    #[attr(default = vec![])]
    pub activations_beta: Vec<f32>,
    /// Limit of what enters a function; 0 is none.
    #[attr(default = 0.0)]
    pub clip: f32,
    /// Which way the sequence is read.
    pub direction: Direction,
    /// The reset gate scales the product with R instead of the hidden state.
    #[attr(default = false)]
    pub linear_before_reset: bool,
}

impl Op for GruSequence {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_sequence(cx, self.kind()?, self.direction)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_sequence(cx, self.kind()?, self.clip, self.direction, None)
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        cost::recurrent(inputs, 3, 2)
    }
}

impl GruSequence {
    fn kind(&self) -> Result<Kind> {
        gru_kind(&self.activations, &self.activations_alpha, &self.activations_beta, self.linear_before_reset)
    }
}
