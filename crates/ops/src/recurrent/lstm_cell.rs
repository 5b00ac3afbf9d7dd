//! LSTMCell: one step of a long short-term memory; gates f, i, c, o. The first version also knows peepholes and coupled
//! gates. It names a gate order too, which must not be believed: see `weights_format`.

use super::activation::Activation;
use super::cell::Kind;
use super::sequence::eval_cell;
use super::shapes::infer_cell;
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact, Version, VersionCx};

/// One LSTM step: `C' = f * C + i * c`, `H' = o * h(C')`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "LSTMCell", since = 4, inputs = "X, initial_hidden_state, initial_cell_state, W, R, B?", outputs = "Ho, Co")]
pub struct LstmCell {
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
}

impl Op for LstmCell {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_cell(cx, self.kind()?, Some(self.hidden_size))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_cell(cx, self.kind()?, self.clip, None, None)
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        cost::recurrent(inputs, 3, 1)
    }
}

impl LstmCell {
    fn kind(&self) -> Result<Kind> {
        lstm_kind(&self.activations, &self.activations_alpha, &self.activations_beta)
    }
}

pub(super) fn default_activations() -> Vec<String> {
    ["sigmoid", "tanh", "tanh"].map(String::from).to_vec()
}

pub(super) fn lstm_kind(names: &[String], alpha: &[f32], beta: &[f32]) -> Result<Kind> {
    let [f, g, h] = Activation::list(names, alpha, beta, ["sigmoid", "tanh", "tanh"])?;
    Ok(Kind::Lstm { f, g, h, input_forget: false })
}

carafe_graph::attr_enum! {
    /// Names of gate orders.
    pub enum WeightsFormat { Fico = "fico", Icof = "icof", Ifco = "ifco", Ifoc = "ifoc", Iofc = "iofc" }
}

/// One LSTM step with peepholes (input 6: gates f, i, o).
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    name = "LSTMCell",
    since = 1,
    until = 3,
    inputs = "X, initial_hidden_state, initial_cell_state, W, R, B?, P?",
    outputs = "Ho, Co"
)]
pub struct LstmCellV1 {
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
    /// Couples the gates: `i = 1 - f`.
    #[attr(default = false)]
    pub input_forget: bool,
    /// Kept, not used: converters write fico weights without saying so, OpenVINO then saves them as `ifco` and still
    /// computes with fico.
    #[attr(default = WeightsFormat::Fico)]
    pub weights_format: WeightsFormat,
}

impl Op for LstmCellV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let kind = self.kind()?;
        infer_cell(cx, kind, Some(self.hidden_size))?;
        if cx.has(6) {
            cx.require_float(6)?;
            cx.require_rank(6, &[1])?;
            let (found, hidden) = (cx.dim(6, 0), cx.dim(1, 1));
            cx.require(hidden.mul(3usize.into()).compatible(found), || {
                format!("peepholes need 3 blocks of hidden size {hidden}, found {found} elements")
            })?;
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_cell(cx, self.kind()?, self.clip, None, Some(6))
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        cost::recurrent(inputs, 3, 1)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let plain = !self.input_forget && self.weights_format == WeightsFormat::Fico && cx.n_inputs() < 7;
        if plain { Version::of::<LstmCell>(self, cx) } else { None }
    }
}

impl LstmCellV1 {
    fn kind(&self) -> Result<Kind> {
        let [f, g, h] = Activation::list(
            &self.activations,
            &self.activations_alpha,
            &self.activations_beta,
            ["sigmoid", "tanh", "tanh"],
        )?;
        Ok(Kind::Lstm { f, g, h, input_forget: self.input_forget })
    }
}
