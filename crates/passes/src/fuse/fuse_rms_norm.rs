//! ```text
//! x / Sqrt(ReduceMean(x^2) + eps) * gamma   ->  RMSNorm(x, axes, gamma) {eps}
//! ```
//!
//! For devices only: the numbered opsets have no such operation, so a file must not hold it. `gamma` is taken along when it
//! cannot widen the data.

use super::look::{fuse, integers, is_float, operands, read_outside};
use super::parts::{over_root, plus_number, reduced, square_of};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::Multiply;
use carafe_ops::carafe::RmsNorm;
use carafe_ops::reduce::ReduceMean;
use carafe_tensor::PartialShape;

/// Division by the root of the mean square becomes RMSNorm.
#[derive(Clone, Copy, Debug)]
pub struct FuseRmsNorm;

impl Rewrite for FuseRmsNorm {
    fn name(&self) -> &'static str {
        "fuse_rms_norm"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((x, axes, eps)) = find(model, root) else { return with_gamma(model, root) };
        if let Some(skip) = read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        let axes = integers(model, root, "axes", &axes)?;
        fuse(model, root, &[x], RmsNorm { eps: eps as f32 }, &[x, axes])
    }
}

fn find(model: &Model, root: NodeId) -> Option<(Value, Vec<i64>, f64)> {
    let (x, radicand) = over_root(model, root)?;
    let (mean, eps) = plus_number(model, radicand)?;
    let (squares, axes) = reduced::<ReduceMean>(model, mean, |r| r.keep_dims)?;
    (square_of(model, squares)? == x && is_float(model, x) && eps >= 0.0).then_some((x, axes, eps))
}

// The factor behind a normalization that was recognised a moment ago: producers come first.
fn with_gamma(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let norm = |v: Value| model.producer::<RmsNorm>(v).filter(|(id, _)| model.node(*id).inputs().len() == 2);
    let found = operands::<Multiply, _>(model, root.into(), |v| norm(v).map(|(id, op)| (id, op.clone())));
    let Some(((id, op), gamma)) = found else { return Ok(Outcome::NoMatch) };
    let &[x, axes] = model.node(id).inputs() else { return Ok(Outcome::NoMatch) };
    if !fits(&model.fact(x).shape, &model.fact(gamma).shape) {
        return Ok(Outcome::skip("the factor may widen the data"));
    }
    fuse(model, root, &[x, axes, gamma], op, &[x, axes, gamma])
}

fn fits(data: &PartialShape, gamma: &PartialShape) -> bool {
    let (Some(data), Some(gamma)) = (data.dims(), gamma.dims()) else { return gamma.rank() == Some(0) };
    let same = |(a, b): (&_, &_)| super::look::same_dim(*a, *b);
    gamma.len() <= data.len()
        && data[data.len() - gamma.len()..].iter().zip(gamma).all(|(d, g)| g.get() == Some(1) || same((d, g)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, fires_static, stays};
    use super::*;
    use carafe_ops::arithmetic::{Add, Divide, Power};
    use carafe_ops::math::Sqrt;

    fn spelled(g: &mut Sketch, inverse: bool) -> (Value, Value) {
        let x = g.input(&[2, 3, 8]);
        let (two, eps, axes) = (g.c(2.0), g.c(1e-2), g.ints(&[-1]));
        let squares = g.op(Power::default(), &[x, two]);
        let mean = g.op(ReduceMean { keep_dims: true }, &[squares, axes]);
        let sum = g.op(Add::default(), &[mean, eps]);
        if inverse {
            let n = g.c(-0.5);
            let root = g.op(Power::default(), &[sum, n]);
            return (g.op(Multiply::default(), &[x, root]), mean);
        }
        let root = g.op(Sqrt, &[sum]);
        (g.op(Divide::default(), &[x, root]), mean)
    }

    #[test]
    fn with_and_without_a_factor() {
        for inverse in [false, true] {
            fires(&FuseRmsNorm, "RMSNorm", |g| spelled(g, inverse).0);
            fires_static(&FuseRmsNorm, "RMSNorm", |g| {
                let y = spelled(g, inverse).0;
                let gamma = g.noise(&[8], 1.0);
                g.op(Multiply::default(), &[gamma, y])
            });
        }
    }

    #[test]
    fn a_mean_that_others_read_stays() {
        stays(&FuseRmsNorm, "ReduceMean `ReduceMean5` has another user", |g| {
            let (y, mean) = spelled(g, false);
            g.op(Add::default(), &[y, mean])
        });
    }

    #[test]
    fn a_factor_that_widens_stays_outside() {
        fires_static(&FuseRmsNorm, "RMSNorm Multiply", |g| {
            let y = spelled(g, false).0;
            let gamma = g.noise(&[5, 1, 1, 8], 1.0);
            g.op(Multiply::default(), &[gamma, y])
        });
    }
}
