//! The sigmoid of three straight lines becomes HSigmoid:
//!
//! ```text
//! Clamp(x + 3, 0, 6) / 6            ->  HSigmoid(x)
//! Clamp(x / 6 + 0.5, 0, 1)          ->  HSigmoid(x)
//! Minimum(ReLU(x + 3), 6) / 6       ->  HSigmoid(x)
//! HardSigmoid(x, 1 / 6, 0.5)        ->  HSigmoid(x)
//! ```

use super::look::{fuse, is_float, made_by, operands, value_of};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Clamp, HSigmoid, HardSigmoid, Relu};
use carafe_ops::arithmetic::{Divide, Minimum, Multiply};

/// The sigmoid of three straight lines becomes HSigmoid.
#[derive(Clone, Copy, Debug)]
pub struct FuseHSigmoid;

impl Rewrite for FuseHSigmoid {
    fn name(&self) -> &'static str {
        "fuse_hsigmoid"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match hard(model, root).or_else(|| scaled(model, root)).or_else(|| limited(model, root.into(), 1.0)) {
            Some(x) => fuse(model, root, &[x], HSigmoid, &[x]),
            None => Ok(Outcome::NoMatch),
        }
    }
}

fn hard(model: &Model, root: NodeId) -> Option<Value> {
    let &[x, alpha, beta] = made_by::<HardSigmoid>(model, root.into())? else { return None };
    // Together they are the line, whose precision is that of the constants.
    let (alpha, beta) = (super::look::number(model, alpha, x)?, super::look::number(model, beta, x)?);
    let near = (alpha.value * 6.0 - 1.0).abs() <= alpha.precision && beta.value == 0.5;
    (near && is_float(model, x)).then_some(x)
}

fn scaled(model: &Model, root: NodeId) -> Option<Value> {
    if model.op_at::<Multiply>(root).is_none() && model.op_at::<Divide>(root).is_none() {
        return None;
    }
    let t = sources(model, root.into()).into_iter().find(|v| limits(model, *v).is_some())?;
    let x = limited(model, t, 6.0)?;
    Poly::of(model, root.into(), x, Some(t))?.is(&[(1.0 / 6.0, 0, 1)]).then_some(x)
}

/// `x`, when the value is `high * HSigmoid(x)` written with limits 0 and `high`.
pub(super) fn limited(model: &Model, v: Value, high: f64) -> Option<Value> {
    let (u, low, top) = limits(model, v)?;
    if low != 0.0 || top != high {
        return None;
    }
    let line = [(high / 2.0, 0, 0), (high / 6.0, 1, 0)];
    sources(model, u)
        .into_iter()
        .find(|&x| is_float(model, x) && Poly::of(model, u, x, None).is_some_and(|p| p.is(&line)))
}

/// What is limited, and to which numbers.
pub(super) fn limits(model: &Model, v: Value) -> Option<(Value, f64, f64)> {
    if let Some((id, clamp)) = model.producer::<Clamp>(v) {
        return Some((model.input(id, 0)?, clamp.min, clamp.max));
    }
    let relu = |v: Value| made_by::<Relu>(model, v).and_then(|i| i.first().copied());
    let (x, high) = operands::<Minimum, _>(model, v, relu)?;
    Some((x, 0.0, value_of(model, high, x)?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::arithmetic::Add;

    #[test]
    fn the_spellings() {
        for spelling in 0..5 {
            fires(&FuseHSigmoid, "HSigmoid", |g| {
                let x = g.input(&[2, 9]);
                let (three, six, sixth, half) = (g.c(3.0), g.c(6.0), g.c(1.0 / 6.0), g.c(0.5));
                match spelling {
                    0 | 1 => {
                        let u = g.op(Add::default(), &[x, three]);
                        let t = g.op(Clamp { min: 0.0, max: 6.0 }, &[u]);
                        match spelling {
                            0 => g.op(Divide::default(), &[t, six]),
                            _ => g.op(Multiply::default(), &[sixth, t]),
                        }
                    }
                    2 => {
                        let u = g.op(Multiply::default(), &[x, sixth]);
                        let u = g.op(Add::default(), &[u, half]);
                        g.op(Clamp { min: 0.0, max: 1.0 }, &[u])
                    }
                    3 => {
                        let u = g.op(Add::default(), &[x, three]);
                        let t = g.op(Relu, &[u]);
                        let t = g.op(Minimum::default(), &[t, six]);
                        g.op(Divide::default(), &[t, six])
                    }
                    _ => g.op(HardSigmoid, &[x, sixth, half]),
                }
            });
        }
    }

    #[test]
    fn other_limits_and_lines_stay() {
        stays(&FuseHSigmoid, "", |g| {
            let x = g.input(&[4]);
            let (alpha, beta) = (g.c(0.2), g.c(0.5));
            g.op(HardSigmoid, &[x, alpha, beta])
        });
        stays(&FuseHSigmoid, "", |g| {
            let x = g.input(&[4]);
            let (three, six) = (g.c(3.0), g.c(6.0));
            let u = g.op(Add::default(), &[x, three]);
            let t = g.op(Clamp { min: 0.0, max: 5.0 }, &[u]);
            g.op(Divide::default(), &[t, six])
        });
    }

    #[test]
    fn limits_that_others_read_stay() {
        stays(&FuseHSigmoid, "Clamp `Clamp4` has another user", |g| {
            let x = g.input(&[4]);
            let (three, six) = (g.c(3.0), g.c(6.0));
            let u = g.op(Add::default(), &[x, three]);
            let t = g.op(Clamp { min: 0.0, max: 6.0 }, &[u]);
            let y = g.op(Divide::default(), &[t, six]);
            g.op(Add::default(), &[t, y])
        });
    }
}
