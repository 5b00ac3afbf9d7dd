//! ```text
//! x * Tanh(SoftPlus(x))                      ->  Mish(x)
//! x * n / (n + 2), n = e * (e + 2), e = Exp(x)  ->  Mish(x)
//! ```
//!
//! Runs after `fuse_softplus`.

use super::look::{fuse, inputs_at, is_float, made_by, operands};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Mish, SoftPlus};
use carafe_ops::arithmetic::{Add, Divide, Multiply};
use carafe_ops::math::{Exp, Tanh};

/// Mish written out becomes Mish.
#[derive(Clone, Copy, Debug)]
pub struct FuseMish;

impl Rewrite for FuseMish {
    fn name(&self) -> &'static str {
        "fuse_mish"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match short(model, root).or_else(|| long(model, root)).filter(|x| is_float(model, *x)) {
            Some(x) => fuse(model, root, &[x], Mish, &[x]),
            None => Ok(Outcome::NoMatch),
        }
    }
}

fn short(model: &Model, root: NodeId) -> Option<Value> {
    inputs_at::<Multiply>(model, root)?;
    let inner = |v: Value| {
        let &[s] = made_by::<Tanh>(model, v)? else { return None };
        made_by::<SoftPlus>(model, s)?.first().copied()
    };
    let (x, other) = operands::<Multiply, _>(model, root.into(), inner)?;
    (x == other).then_some(x)
}

fn long(model: &Model, root: NodeId) -> Option<Value> {
    // x * (n / m), or (x * n) / m.
    let (x, n, m) = match inputs_at::<Divide>(model, root) {
        Some(&[above, m]) => {
            let &[a, b] = made_by::<Multiply>(model, above)? else { return None };
            if of_exp(model, b, a) { (a, b, m) } else { (b, a, m) }
        }
        _ => {
            inputs_at::<Multiply>(model, root)?;
            let parts = |v: Value| made_by::<Divide>(model, v).and_then(|i| Some((*i.first()?, *i.get(1)?)));
            let ((n, m), x) = operands::<Multiply, _>(model, root.into(), parts)?;
            (x, n, m)
        }
    };
    let two_more =
        made_by::<Add>(model, m)?.contains(&n) && Poly::of(model, m, x, Some(n))?.is(&[(2.0, 0, 0), (1.0, 0, 1)]);
    (two_more && of_exp(model, n, x)).then_some(x)
}

// Whether `n` is `e * (e + 2)` for `e = Exp(x)`.
fn of_exp(model: &Model, n: Value, x: Value) -> bool {
    let exp = sources(model, n).into_iter().find(|v| made_by::<Exp>(model, *v) == Some(&[x][..]));
    // `e` takes the place of the variable here.
    exp.and_then(|e| Poly::of(model, n, e, None)).is_some_and(|p| p.is(&[(2.0, 1, 0), (1.0, 2, 0)]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;

    #[test]
    fn the_short_form() {
        for swapped in [false, true] {
            fires(&FuseMish, "Mish", |g| {
                let x = g.input(&[2, 5]);
                let s = g.op(SoftPlus, &[x]);
                let t = g.op(Tanh, &[s]);
                g.op(Multiply::default(), &if swapped { [t, x] } else { [x, t] })
            });
        }
    }

    #[test]
    fn the_long_form() {
        for late in [false, true] {
            fires(&FuseMish, "Mish", |g| {
                let x = g.input(&[2, 5]);
                let e = g.op(Exp, &[x]);
                let two = g.c(2.0);
                let sum = g.op(Add::default(), &[e, two]);
                let n = g.op(Multiply::default(), &[e, sum]);
                let m = g.op(Add::default(), &[n, two]);
                if late {
                    let y = g.op(Multiply::default(), &[x, n]);
                    g.op(Divide::default(), &[y, m])
                } else {
                    let y = g.op(Divide::default(), &[n, m]);
                    g.op(Multiply::default(), &[x, y])
                }
            });
        }
    }

    #[test]
    fn others_stay() {
        stays(&FuseMish, "", |g| {
            let (x, z) = (g.input(&[3]), g.input(&[3]));
            let s = g.op(SoftPlus, &[x]);
            let t = g.op(Tanh, &[s]);
            g.op(Multiply::default(), &[z, t])
        });
        stays(&FuseMish, "SoftPlus `SoftPlus1` has another user", |g| {
            let x = g.input(&[3]);
            let s = g.op(SoftPlus, &[x]);
            let t = g.op(Tanh, &[s]);
            let y = g.op(Multiply::default(), &[x, t]);
            g.op(Add::default(), &[y, s])
        });
    }
}
