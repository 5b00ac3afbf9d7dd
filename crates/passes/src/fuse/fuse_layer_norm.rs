//! Normalization by mean and variance becomes MVN; a following factor and shift stay as they are:
//!
//! ```text
//! d = x - ReduceMean(x)
//! d / Sqrt(ReduceMean(d^2) + eps)      ->  MVN(x) {eps, INSIDE_SQRT}
//! d / (Sqrt(ReduceMean(d^2)) + eps)    ->  MVN(x) {eps, OUTSIDE_SQRT}
//! ```
//!
//! Both means are over the same axes and keep their dimensions. The difference may be written twice.

use super::look::{fuse, integers, is_float, made_by, read_outside};
use super::parts::{over_root, plus_number, quotient, reduced, root_of, square_of};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::{SquaredDifference, Subtract};
use carafe_ops::normalization::Mvn;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::reduce::ReduceMean;

/// Normalization by mean and variance becomes MVN.
#[derive(Clone, Copy, Debug)]
pub struct FuseLayerNorm;

/// A difference from the mean.
#[derive(PartialEq)]
struct Centred {
    x: Value,
    axes: Vec<i64>,
}

impl Rewrite for FuseLayerNorm {
    fn name(&self) -> &'static str {
        "fuse_layer_norm"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((Centred { x, axes }, eps, eps_mode)) = inside(model, root).or_else(|| outside(model, root)) else {
            return Ok(Outcome::NoMatch);
        };
        if !is_float(model, x) {
            return Ok(Outcome::NoMatch);
        }
        let eps = eps as f32;
        if !(eps > 0.0 && eps.is_finite()) {
            return Ok(Outcome::skip(format!("MVN needs a number above 0 beside the variance, found {eps}")));
        }
        if let Some(skip) = read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        let axes = integers(model, root, "axes", &axes)?;
        fuse(model, root, &[x], Mvn { eps, normalize_variance: true, eps_mode }, &[x, axes])
    }
}

fn inside(model: &Model, root: NodeId) -> Option<(Centred, f64, EpsMode)> {
    let (top, radicand) = over_root(model, root)?;
    let top = centred(model, top)?;
    // Without a small number the fusion is refused, and said to be.
    let (variance, eps) = plus_number(model, radicand).unwrap_or((radicand, 0.0));
    (variance_of(model, variance)? == top).then_some((top, eps, EpsMode::InsideSqrt))
}

fn outside(model: &Model, root: NodeId) -> Option<(Centred, f64, EpsMode)> {
    let (top, below) = quotient(model, root)?;
    let top = centred(model, top)?;
    let (deviation, eps) = plus_number(model, below)?;
    let variance = root_of(model, deviation)?;
    (variance_of(model, variance)? == top).then_some((top, eps, EpsMode::OutsideSqrt))
}

fn centred(model: &Model, v: Value) -> Option<Centred> {
    let &[x, mean] = made_by::<Subtract>(model, v)? else { return None };
    from_mean(model, x, mean)
}

fn from_mean(model: &Model, x: Value, mean: Value) -> Option<Centred> {
    let (data, axes) = reduced::<ReduceMean>(model, mean, |r| r.keep_dims)?;
    (data == x).then_some(Centred { x, axes })
}

fn variance_of(model: &Model, v: Value) -> Option<Centred> {
    let (squares, axes) = reduced::<ReduceMean>(model, v, |r| r.keep_dims)?;
    let inner = match made_by::<SquaredDifference>(model, squares) {
        Some(&[a, b]) => from_mean(model, a, b).or_else(|| from_mean(model, b, a))?,
        _ => centred(model, square_of(model, squares)?)?,
    };
    (inner.axes == axes).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_ops::arithmetic::{Add, Divide, Multiply, Power};
    use carafe_ops::math::Sqrt;

    fn mean(g: &mut Sketch, x: Value, axes: &[i64]) -> Value {
        let axes = g.ints(axes);
        g.op(ReduceMean { keep_dims: true }, &[x, axes])
    }

    #[test]
    fn the_spellings() {
        for spelling in 0..6 {
            fires(&FuseLayerNorm, "MVN Multiply Add", |g| {
                let x = g.input(&[2, 3, 8]);
                let m = mean(g, x, &[-1]);
                let d = g.op(Subtract::default(), &[x, m]);
                let (two, eps) = (g.c(2.0), g.tensor(&[1], &[1e-2]));
                let squares = match spelling {
                    1 => g.op(Multiply::default(), &[d, d]),
                    2 => g.op(SquaredDifference::default(), &[x, m]),
                    3 => {
                        let again = g.op(Subtract::default(), &[x, m]);
                        g.op(Power::default(), &[again, two])
                    }
                    _ => g.op(Power::default(), &[d, two]),
                };
                let variance = mean(g, squares, &[2]);
                let y = if spelling == 4 {
                    let root = g.op(Sqrt, &[variance]);
                    let below = g.op(Add::default(), &[root, eps]);
                    g.op(Divide::default(), &[d, below])
                } else {
                    let sum = g.op(Add::default(), &[variance, eps]);
                    if spelling == 5 {
                        let n = g.c(-0.5);
                        let inverse = g.op(Power::default(), &[sum, n]);
                        g.op(Multiply::default(), &[d, inverse])
                    } else {
                        let root = g.op(Sqrt, &[sum]);
                        g.op(Divide::default(), &[d, root])
                    }
                };
                let (gamma, beta) = (g.noise(&[8], 1.0), g.noise(&[8], 0.0));
                let y = g.op(Multiply::default(), &[y, gamma]);
                g.op(Add::default(), &[y, beta])
            });
        }
    }

    fn plain(g: &mut Sketch, first: &[i64], second: &[i64], eps: f64) -> (Value, Value) {
        let x = g.input(&[2, 3, 8]);
        let m = mean(g, x, first);
        let d = g.op(Subtract::default(), &[x, m]);
        let squares = g.op(Multiply::default(), &[d, d]);
        let variance = mean(g, squares, second);
        let eps = g.c(eps);
        let sum = g.op(Add::default(), &[variance, eps]);
        let root = g.op(Sqrt, &[sum]);
        (g.op(Divide::default(), &[d, root]), m)
    }

    #[test]
    fn several_axes() {
        fires(&FuseLayerNorm, "MVN", |g| plain(g, &[1, 2], &[-1, -2], 1e-3).0);
    }

    #[test]
    fn others_stay() {
        stays(&FuseLayerNorm, "", |g| plain(g, &[2], &[1], 1e-3).0);
        stays(&FuseLayerNorm, "needs a number above 0", |g| plain(g, &[2], &[2], 0.0).0);
        stays(&FuseLayerNorm, "ReduceMean `ReduceMean2` has another user", |g| {
            let (y, m) = plain(g, &[2], &[2], 1e-3);
            g.op(Add::default(), &[y, m])
        });
    }
}
