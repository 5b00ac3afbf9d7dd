//! LSTMSequence: an LSTM cell run over time, forwards, backwards or both. Backwards starts at each row's own length.

use super::Direction;
use super::cell::Kind;
use super::lstm_cell::{default_activations, lstm_kind};
use super::sequence::eval_sequence;
use super::shapes::infer_sequence;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// LSTM over a batch of sequences: all hidden states, and the last hidden and cell state.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "LSTMSequence",
    since = 5,
    inputs = "X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B",
    outputs = "Y, Ho, Co", heavy)]
pub struct LstmSequence {
    /// Length of the hidden state.
    pub hidden_size: u64,
    /// Functions of the gates, of the new cell value and of the output.
    #[attr(default = default_activations())]
    pub activations: Vec<String>,
    /// First parameter of each function, where it has one.
    #[attr(default = vec![])]
    pub activations_alpha: Vec<f32>,
    /// Second parameter of each function, where it has one.
    #[attr(default = vec![])]
    pub activations_beta: Vec<f32>,
    /// Limit of what enters a gate function; 0 is none.
    #[attr(default = 0.0)]
    pub clip: f32,
    /// Which way the sequence is read.
    pub direction: Direction,
}

impl Op for LstmSequence {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_sequence(cx, self.kind()?, self.direction)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_sequence(cx, self.kind()?, self.clip, self.direction, None)
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        cost::recurrent(inputs, 4, 2)
    }
}

impl LstmSequence {
    fn kind(&self) -> Result<Kind> {
        lstm_kind(&self.activations, &self.activations_alpha, &self.activations_beta)
    }
}
