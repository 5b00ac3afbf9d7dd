//! Normalization with stored statistics that no layer took in becomes arithmetic, which devices join with its neighbours:
//!
//! ```text
//! BatchNormInference(x, gamma, beta, mean, variance)
//!     ->  x * s + (beta - mean * s),   s = gamma / sqrt(variance + epsilon)
//! ```
//!
//! Where the mean is far from zero it is subtracted first, as the operation does, so that no digits are lost.

use super::fold_batch_norm::parts;
use super::linear::Plain;
use super::look::put_in_place;
use super::weights::numbers;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};

/// Normalization with stored statistics that no layer took in becomes arithmetic.
#[derive(Clone, Copy, Debug)]
pub struct SpellBatchNorm;

/// Means, in units of the result, up to which they may join the shift.
const NEAR: f64 = 64.0;

impl Rewrite for SpellBatchNorm {
    fn name(&self) -> &'static str {
        "spell_batch_norm"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((data, statistics, epsilon)) = parts(model, root) else { return Ok(Outcome::NoMatch) };
        let [Some(gamma), Some(beta), Some(mean), Some(variance)] = statistics.map(|v| numbers(model, v)) else {
            return Ok(Outcome::skip("its statistics are computed"));
        };
        let Some(rank) = model.fact(data).shape.rank().filter(|r| *r >= 2) else {
            return Ok(Outcome::skip("the rank of its data is unknown"));
        };
        // Data of one channel would be stretched, where the operation refuses it.
        if model.fact(data).shape.dims().and_then(|d| d[1].size()) != Some(gamma.len()) {
            return Ok(Outcome::skip("the number of its channels is unknown"));
        }
        let ty = model.fact(root.into()).ty;
        let mut shape = vec![1; rank - 1];
        shape[0] = gamma.len();
        let plain = |values: Vec<f64>| Plain { shape: shape.clone(), values };
        let scale: Vec<f64> = gamma.iter().zip(&variance).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
        let away: Vec<f64> = mean.iter().zip(&scale).map(|(m, s)| m * s).collect();
        let near = away.iter().all(|x| x.abs() <= NEAR);
        let shift = if near { beta.iter().zip(&away).map(|(b, a)| b - a).collect() } else { beta };
        let (mean, scale, shift) = (plain(mean), plain(scale), plain(shift));
        if ![&mean, &scale, &shift].iter().all(|c| c.values.iter().all(|x| x.is_finite() && x.abs() < 1e30)) {
            return Ok(Outcome::skip("its numbers are not finite or too large"));
        }
        let name = model.node(root).name().to_string();
        let mut y = data;
        if !near {
            let mean = model.constant(&format!("{name}/mean"), mean.tensor(ty)?)?;
            y = model.add(format!("{name}/Subtract"), Subtract::default(), &[y, mean])?.into();
        }
        let scale = model.constant(&format!("{name}/factor"), scale.tensor(ty)?)?;
        y = model.add(format!("{name}/Multiply"), Multiply::default(), &[y, scale])?.into();
        let shift = model.constant(&format!("{name}/shift"), shift.tensor(ty)?)?;
        let y = model.add(format!("{name}/Add"), Add::default(), &[y, shift])?;
        put_in_place(model, root, y)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fold_batch_norm::tests::norm;
    use super::super::testing::{fires_static, stays};
    use super::*;
    use carafe_ops::activation::Relu;
    use carafe_ops::normalization::BatchNormInference;

    #[test]
    fn data_of_any_rank_is_scaled_and_shifted() {
        for shape in [&[2, 6][..], &[2, 6, 5], &[1, 6, 3, 3], &[2, 6, 2, 3, 2]] {
            fires_static(&SpellBatchNorm, "Relu Multiply Add", |g| {
                let x = g.input(shape);
                let x = g.op(Relu, &[x]);
                norm(g, x, 6)
            });
        }
        fires_static(&SpellBatchNorm, "Multiply Add", |g| {
            let x = g.input(&[2, 3, 4]);
            let (gamma, beta, mean) = (g.noise(&[3], 1.0), g.noise(&[3], 0.0), g.noise(&[3], 0.2));
            let variance = g.noise(&[3], 1.0);
            g.op(BatchNormInference { epsilon: 1e-3 }, &[x, gamma, beta, mean, variance])
        });
    }

    #[test]
    fn a_mean_far_from_zero_is_subtracted_first() {
        fires_static(&SpellBatchNorm, "Subtract Multiply Add", |g| {
            let x = g.input(&[2, 3, 4]);
            let (gamma, beta, mean) = (g.noise(&[3], 1.0), g.noise(&[3], 0.0), g.noise(&[3], 1000.0));
            let variance = g.noise(&[3], 1.0);
            g.op(BatchNormInference { epsilon: 1e-3 }, &[x, gamma, beta, mean, variance])
        });
    }

    #[test]
    fn others_stay() {
        stays(&SpellBatchNorm, "its statistics are computed", |g| {
            let (x, gamma) = (g.input(&[2, 3, 4]), g.input(&[3]));
            let (beta, mean, variance) = (g.noise(&[3], 0.0), g.noise(&[3], 0.0), g.noise(&[3], 1.0));
            g.op(BatchNormInference { epsilon: 1e-3 }, &[x, gamma, beta, mean, variance])
        });
        stays(&SpellBatchNorm, "not finite", |g| {
            let x = g.input(&[2, 3, 4]);
            let (ones, zeros) = (g.tensor(&[3], &[1.0; 3]), g.tensor(&[3], &[0.0; 3]));
            g.op(BatchNormInference { epsilon: 0.0 }, &[x, ones, zeros, zeros, zeros])
        });
    }
}
