//! RNNSequence: a plain recurrent cell run over time. Backwards starts at each row's own length.

use super::Direction;
use super::cell::Kind;
use super::rnn_cell::rnn_kind;
use super::sequence::eval_sequence;
use super::shapes::infer_sequence;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// Plain recurrence over a batch of sequences: all hidden states, and the last one.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "RNNSequence",
    since = 5,
    inputs = "X, initial_hidden_state, sequence_lengths, W, R, B",
    outputs = "Y, Ho", heavy)]
pub struct RnnSequence {
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
    /// Which way the sequence is read.
    pub direction: Direction,
}

impl Op for RnnSequence {
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

impl RnnSequence {
    fn kind(&self) -> Result<Kind> {
        rnn_kind(&self.activations, &self.activations_alpha, &self.activations_beta)
    }
}
