//! AUGRUCell: a GRU step whose update gate is weakened by an attention score, `z' = (1 - a) * z`. Made by rewrites, not by
//! converters, so its opset is an internal one.

use super::cell::Kind;
use super::gru_cell::{default_activations, gru_kind};
use super::sequence::eval_cell;
use super::shapes::{float_type, infer_cell, merge};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;

/// One GRU step with attention A `[batch, 1]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "AUGRUCell",
    opset = "ie_internal_opset",
    inputs = "X, initial_hidden_state, W, R, B, A",
    outputs = "Ho"
)]
pub struct AugruCell {
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

impl Op for AugruCell {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_cell(cx, self.kind()?, None)?;
        float_type(cx, &[0, 5])?;
        cx.require_rank(5, &[2])?;
        merge(cx, &mut cx.dim(0, 0), cx.dim(5, 0), "batch")?;
        merge(cx, &mut Dim::known(1), cx.dim(5, 1), "attention")
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_cell(cx, self.kind()?, self.clip, Some(5), None)
    }
}

impl AugruCell {
    fn kind(&self) -> Result<Kind> {
        let plain = (self.linear_before_reset, self.clip);
        augru_kind(&self.activations, &self.activations_alpha, &self.activations_beta, plain)
    }
}

pub(super) fn augru_kind(names: &[String], alpha: &[f32], beta: &[f32], plain: (bool, f32)) -> Result<Kind> {
    if plain != (false, 0.0) {
        return Err(carafe_graph::Error::invalid("attributes `linear_before_reset` and `clip` must be off"));
    }
    gru_kind(names, alpha, beta, false)
}
