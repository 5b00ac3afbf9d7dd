//! Gelu: `y = x * P(X <= x)` for a normal X, by the error function or by the tanh formula. Opset 2 knew only the former.

use crate::math::{special, unary};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

carafe_graph::attr_enum! {
    /// The formula of Gelu.
    pub enum GeluApproximation {
        /// `x / 2 * (1 + erf(x / sqrt(2)))`
        Erf = "ERF",
        /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`
        Tanh = "TANH",
    }
}

/// Gaussian error linear unit.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 7, elementwise, keeps_zero)]
pub struct Gelu {
    /// Which formula.
    #[attr(default = GeluApproximation::Erf)]
    pub approximation_mode: GeluApproximation,
}

impl Op for Gelu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        match self.approximation_mode {
            GeluApproximation::Erf => unary::map_float(cx, gelu),
            GeluApproximation::Tanh => unary::map_float(cx, gelu_tanh),
        }
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.approximation_mode == GeluApproximation::Erf { Version::of::<GeluV2>(self, cx) } else { None }
    }
}

/// Gaussian error linear unit by the error function.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Gelu", since = 2, until = 6, elementwise, keeps_zero)]
pub struct GeluV2;

impl Op for GeluV2 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        unary::infer_float(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        unary::map_float(cx, gelu)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Gelu>(self, cx)
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + special::erf(x * FRAC_1_SQRT_2))
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}
