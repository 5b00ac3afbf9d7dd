//! BatchNormInference: `(x - mean) / sqrt(variance + epsilon) * gamma + beta` with one set of numbers for each channel.
//! Before opset5 the data is input 2, after gamma and beta.

use super::moments::check_epsilon;
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::PartialShape;

/// Normalization of the channels (dimension 1) with given statistics.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 5, inputs = "data, gamma, beta, mean, variance", rows = "0")]
pub struct BatchNormInference {
    /// Added to the variance.
    pub epsilon: f32,
}

impl Op for BatchNormInference {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, 0, [1, 2, 3, 4], self.epsilon)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, 0, [1, 2, 3, 4], self.epsilon)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<BatchNormInferenceV1>(self, cx).map(|v| v.picking(&[1, 2, 0, 3, 4]))
    }
}

/// Normalization of the channels (dimension 1) with given statistics; the data comes third.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "BatchNormInference", since = 1, until = 4, inputs = "gamma, beta, data, mean, variance", rows = "2")]
pub struct BatchNormInferenceV1 {
    /// Added to the variance.
    pub epsilon: f32,
}

impl Op for BatchNormInferenceV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, 2, [0, 1, 3, 4], self.epsilon)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, 2, [0, 1, 3, 4], self.epsilon)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<BatchNormInference>(self, cx).map(|v| v.picking(&[2, 0, 1, 3, 4]))
    }
}

fn infer(cx: &mut InferCx<'_>, data: usize, per_channel: [usize; 4], epsilon: f32) -> Result<()> {
    let ty = cx.same_type(&[data, per_channel[0], per_channel[1], per_channel[2], per_channel[3]])?;
    cx.require_float(data)?;
    check_epsilon(cx, "epsilon", epsilon)?;
    cx.require(cx.rank(data).is_none_or(|r| r >= 2), || {
        format!("{} must have at least rank 2, found [{}]", cx.port_name(data), cx.shape(data))
    })?;
    let mut channels = cx.dim(data, 1);
    for input in per_channel {
        cx.require_rank(input, &[1])?;
        let own = cx.dim(input, 0);
        channels = channels.merge(own).ok_or_else(|| {
            cx.fail(format!("{} must have {channels} values, one for each channel, found {own}", cx.port_name(input)))
        })?;
    }
    let mut shape: PartialShape = cx.shape(data).clone();
    if let Some(dims) = shape.dims_mut() {
        dims[1] = channels;
    }
    cx.set(0, ty, shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, data: usize, per_channel: [usize; 4], epsilon: f32) -> Result<()> {
    let shape = cx.shape(data).to_vec();
    let (_, channels, inner) = around(&shape, 1);
    let mut x = cx.get::<f64>(data)?.into_owned();
    let [gamma, beta, mean, variance] = per_channel.map(|i| cx.get::<f64>(i));
    let (gamma, beta, mean, variance) = (gamma?, beta?, mean?, variance?);
    if !x.is_empty() {
        for (i, row) in x.chunks_exact_mut(inner).enumerate() {
            let c = i % channels;
            let scale = gamma[c] / (variance[c] + f64::from(epsilon)).sqrt();
            row.iter_mut().for_each(|x| *x = (*x - mean[c]) * scale + beta[c]);
        }
    }
    drop((gamma, beta, mean, variance));
    cx.put(0, &shape, x)
}
