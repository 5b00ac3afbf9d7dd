//! The sigmoid-weighted unit becomes Swish:
//!
//! ```text
//! x * Sigmoid(x)             ->  Swish(x)
//! x * Sigmoid(beta * x)      ->  Swish(x, beta)
//! x / (1 + Exp(-beta * x))   ->  Swish(x, beta)
//! ```
//!
//! `beta` must be one number.

use super::look::{fuse, inputs_at, is_float, made_by, scalar};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Sigmoid, Swish};
use carafe_ops::arithmetic::{Divide, Multiply};
use carafe_ops::math::Exp;

/// The sigmoid-weighted unit becomes Swish.
#[derive(Clone, Copy, Debug)]
pub struct FuseSilu;

impl Rewrite for FuseSilu {
    fn name(&self) -> &'static str {
        "fuse_silu"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((x, beta)) = product(model, root).or_else(|| quotient(model, root)) else {
            return Ok(Outcome::NoMatch);
        };
        if let Some(skip) = super::look::read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        if (beta - 1.0).abs() <= 1e-7 {
            return fuse(model, root, &[x], Swish, &[x]);
        }
        let beta = scalar(model, root, "beta", x, beta)?;
        fuse(model, root, &[x], Swish, &[x, beta])
    }
}

fn product(model: &Model, root: NodeId) -> Option<(Value, f64)> {
    let &[a, b] = inputs_at::<Multiply>(model, root)? else { return None };
    let with = |x: Value, s: Value| {
        let &[u] = made_by::<Sigmoid>(model, s)? else { return None };
        let beta = Poly::of(model, u, x, None)?.multiple_of_x()?;
        is_float(model, x).then_some((x, beta))
    };
    with(a, b).or_else(|| with(b, a))
}

fn quotient(model: &Model, root: NodeId) -> Option<(Value, f64)> {
    let &[x, below] = inputs_at::<Divide>(model, root)? else { return None };
    let t = sources(model, below).into_iter().find(|v| model.producer::<Exp>(*v).is_some())?;
    let u = model.input(t.node, 0)?;
    let beta = -Poly::of(model, u, x, None)?.multiple_of_x()?;
    let sum = Poly::of(model, below, x, Some(t))?;
    (is_float(model, x) && sum.is(&[(1.0, 0, 0), (1.0, 0, 1)])).then_some((x, beta))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::arithmetic::Add;
    use carafe_ops::math::Negative;

    #[test]
    fn with_and_without_a_factor() {
        for beta in [None, Some(1.702)] {
            for swapped in [false, true] {
                fires(&FuseSilu, "Swish", |g| {
                    let x = g.input(&[2, 3]);
                    let u = match beta {
                        Some(beta) => {
                            let beta = g.c(beta);
                            g.op(Multiply::default(), &[beta, x])
                        }
                        None => x,
                    };
                    let s = g.op(Sigmoid, &[u]);
                    g.op(Multiply::default(), &if swapped { [s, x] } else { [x, s] })
                });
            }
        }
    }

    #[test]
    fn the_sigmoid_may_be_written_out() {
        fires(&FuseSilu, "Swish", |g| {
            let x = g.input(&[2, 3]);
            let u = g.op(Negative, &[x]);
            let e = g.op(Exp, &[u]);
            let one = g.c(1.0);
            let below = g.op(Add::default(), &[e, one]);
            g.op(Divide::default(), &[x, below])
        });
    }

    #[test]
    fn a_sigmoid_with_other_users_or_of_something_else_stays() {
        stays(&FuseSilu, "Sigmoid `Sigmoid1` has another user", |g| {
            let x = g.input(&[3]);
            let s = g.op(Sigmoid, &[x]);
            let y = g.op(Multiply::default(), &[x, s]);
            g.op(Add::default(), &[y, s])
        });
        stays(&FuseSilu, "", |g| {
            let (x, z) = (g.input(&[3]), g.input(&[3]));
            let s = g.op(Sigmoid, &[x]);
            g.op(Multiply::default(), &[z, s])
        });
        stays(&FuseSilu, "", |g| {
            let x = g.input(&[3]);
            let beta = g.noise(&[3], 1.0);
            let u = g.op(Multiply::default(), &[x, beta]);
            let s = g.op(Sigmoid, &[u]);
            g.op(Multiply::default(), &[x, s])
        });
    }
}
