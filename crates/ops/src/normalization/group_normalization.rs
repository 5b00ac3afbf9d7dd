//! GroupNormalization: normalizes groups of channels together with all their spatial positions, then scales and shifts
//! each channel. The variance is biased.

use super::moments::{Groups, check_epsilon};
use crate::index::around;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PartialShape;

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias`, mean and variance over groups of channels.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 12, inputs = "data, scale, bias", rows = "0")]
pub struct GroupNormalization {
    /// Number of groups; divides the number of channels.
    pub num_groups: i64,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Op for GroupNormalization {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1, 2])?;
        cx.require_float(0)?;
        check_epsilon(cx, "epsilon", self.epsilon)?;
        cx.require(self.num_groups >= 1, || {
            format!("attribute `num_groups` must be at least 1, found {}", self.num_groups)
        })?;
        cx.require(cx.rank(0).is_none_or(|r| r >= 2), || {
            format!("data must have at least rank 2, found [{}]", cx.shape(0))
        })?;
        let mut channels = cx.dim(0, 1);
        for input in [1, 2] {
            cx.require_rank(input, &[1])?;
            let own = cx.dim(input, 0);
            channels = channels.merge(own).ok_or_else(|| {
                cx.fail(format!("{} must have {channels} values, one for each channel, found {own}", cx.port_name(input)))
            })?;
        }
        cx.require(channels.get().is_none_or(|c| c % self.num_groups == 0), || {
            format!("{channels} channels do not divide into {} groups", self.num_groups)
        })?;
        let mut shape: PartialShape = cx.shape(0).clone();
        if let Some(dims) = shape.dims_mut() {
            dims[1] = channels;
        }
        cx.set(0, ty, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let (batch, channels, inner) = around(&shape, 1);
        let mut data = cx.get::<f64>(0)?.into_owned();
        let (scale, bias) = (cx.get::<f64>(1)?, cx.get::<f64>(2)?);
        if !data.is_empty() {
            let n_groups = self.num_groups as usize;
            let groups = Groups::over(&[batch * n_groups, channels / n_groups * inner], &[1]);
            let means = groups.means(&data);
            let variances = groups.variances(&data, &means);
            for (i, row) in data.chunks_exact_mut(inner).enumerate() {
                let (c, group) = (i % channels, i * inner / groups.size);
                let factor = scale[c] / (variances[group] + f64::from(self.epsilon)).sqrt();
                row.iter_mut().for_each(|x| *x = (*x - means[group]) * factor + bias[c]);
            }
        }
        drop((scale, bias));
        cx.put(0, &shape, data)
    }
}
