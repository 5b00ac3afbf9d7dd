//! GRUCell: one step of a gated recurrent unit; gates z, r, h. With `linear_before_reset` the bias has four blocks.

use super::activation::Activation;
use super::cell::Kind;
use super::sequence::eval_cell;
use super::shapes::infer_cell;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact};

/// One GRU step: `H' = (1 - z) * h + z * H`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "GRUCell", since = 3, inputs = "X, initial_hidden_state, W, R, B?", outputs = "Ho", also = "experimental, extension")]
pub struct GruCell {
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
    /// The reset gate scales the product with R instead of the hidden state.
    #[attr(default = false)]
    pub linear_before_reset: bool,
}

impl Op for GruCell {
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

impl GruCell {
    fn kind(&self) -> Result<Kind> {
        gru_kind(&self.activations, &self.activations_alpha, &self.activations_beta, self.linear_before_reset)
    }
}

pub(super) fn default_activations() -> Vec<String> {
    ["sigmoid", "tanh"].map(String::from).to_vec()
}

pub(super) fn gru_kind(names: &[String], alpha: &[f32], beta: &[f32], linear_before_reset: bool) -> Result<Kind> {
    let [f, g] = Activation::list(names, alpha, beta, ["sigmoid", "tanh"])?;
    Ok(Kind::Gru { f, g, linear_before_reset })
}
