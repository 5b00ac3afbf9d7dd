//! AUGRUSequence: a GRU with attention run over time, forwards only.

use super::Direction;
use super::augru_cell::augru_kind;
use super::cell::Kind;
use super::gru_cell::default_activations;
use super::sequence::eval_sequence;
use super::shapes::{float_type, infer_sequence, merge};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// GRU over a batch of sequences with attention A `[batch, time, 1]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "AUGRUSequence",
    opset = "ie_internal_opset",
    inputs = "X, initial_hidden_state, sequence_lengths, W, R, B, A",
    outputs = "Y, Ho", heavy)]
pub struct AugruSequence {
    /// Only forward exists.
    #[attr(default = Direction::Forward)]
    pub direction: Direction,
    /// Only false exists.
    #[attr(default = false)]
    pub linear_before_reset: bool,
    /// Length of the hidden state.
    pub hidden_size: u64,
    /// Only sigmoid, tanh exist.
    #[attr(default = default_activations())]
    pub activations: Vec<String>,
    /// Always empty.
    #[attr(default = vec![])]
    pub activations_alpha: Vec<f32>,
    /// Always empty.
    #[attr(default = vec![])]
    pub activations_beta: Vec<f32>,
    /// Only 0 exists.
    #[attr(default = 0.0)]
    pub clip: f32,
}

impl Op for AugruSequence {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(self.direction == Direction::Forward, || {
            format!("attribute `direction` must be forward, found {}", self.direction.text())
        })?;
        infer_sequence(cx, self.kind()?, self.direction)?;
        float_type(cx, &[0, 6])?;
        cx.require_rank(6, &[3])?;
        merge(cx, &mut cx.dim(0, 0), cx.dim(6, 0), "batch")?;
        merge(cx, &mut cx.dim(0, 1), cx.dim(6, 1), "time")?;
        merge(cx, &mut Dim::known(1), cx.dim(6, 2), "attention")
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_sequence(cx, self.kind()?, self.clip, self.direction, Some(6))
    }
}

impl AugruSequence {
    fn kind(&self) -> Result<Kind> {
        let plain = (self.linear_before_reset, self.clip);
        augru_kind(&self.activations, &self.activations_alpha, &self.activations_beta, plain)
    }
}
