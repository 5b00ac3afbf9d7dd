//! Limits by numbers become Clamp:
//!
//! ```text
//! Minimum(Maximum(x, a), b)   ->  Clamp(x, a, b)      a <= b
//! Maximum(Minimum(x, b), a)   ->  Clamp(x, a, b)      a <= b
//! Minimum(ReLU(x), b)         ->  Clamp(x, 0, b)      0 <= b
//! Clamp(Clamp(x, a, b), c, d) ->  Clamp(x, ..)        where the ranges meet
//! ```
//!
//! Floats only: on integers Clamp rounds its limits.

use super::look::{fuse, inputs_at, is_float, made_by, value_of};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Clamp, Relu};
use carafe_ops::arithmetic::{Maximum, Minimum};

/// Limits by numbers become Clamp.
#[derive(Clone, Copy, Debug)]
pub struct FuseClamp;

/// A value kept at or above `low` and at or below `high`.
struct Limited {
    x: Value,
    low: f64,
    high: f64,
}

impl Rewrite for FuseClamp {
    fn name(&self) -> &'static str {
        "fuse_clamp"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if !is_float(model, root.into()) || inputs_at::<Relu>(model, root).is_some() {
            return Ok(Outcome::NoMatch);
        }
        let Some(outer) = limited(model, root.into()) else { return Ok(Outcome::NoMatch) };
        let Some(inner) = limited(model, outer.x) else { return Ok(Outcome::NoMatch) };
        let (low, high) = (inner.low.max(outer.low), inner.high.min(outer.high));
        if low > high {
            return Ok(Outcome::skip(format!(
                "the ranges {}..{} and {}..{} do not meet",
                inner.low, inner.high, outer.low, outer.high
            )));
        }
        if !low.is_finite() || !high.is_finite() {
            return Ok(Outcome::skip("one side has no limit"));
        }
        fuse(model, root, &[inner.x], Clamp { min: low, max: high }, &[inner.x])
    }
}

fn limited(model: &Model, v: Value) -> Option<Limited> {
    if let Some((id, clamp)) = model.producer::<Clamp>(v) {
        return Some(Limited { x: model.input(id, 0)?, low: clamp.min, high: clamp.max });
    }
    if let Some(&[x]) = made_by::<Relu>(model, v) {
        return Some(Limited { x, low: 0.0, high: f64::INFINITY });
    }
    let apart = |a: Value, b: Value| {
        let number = |n: Value, x: Value| value_of(model, n, x).filter(|n| !n.is_nan()).map(|n| (x, n));
        number(b, a).or_else(|| number(a, b))
    };
    if let Some(&[a, b]) = made_by::<Maximum>(model, v) {
        let (x, low) = apart(a, b)?;
        return Some(Limited { x, low, high: f64::INFINITY });
    }
    let &[a, b] = made_by::<Minimum>(model, v)? else { return None };
    let (x, high) = apart(a, b)?;
    Some(Limited { x, low: f64::NEG_INFINITY, high })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::arithmetic::Add;

    #[test]
    fn limits_in_either_order() {
        for order in 0..4 {
            fires(&FuseClamp, "Clamp", |g| {
                let x = g.input(&[2, 9]);
                let (low, high) = (g.c(-1.0), g.tensor(&[1], &[2.5]));
                match order {
                    0 => {
                        let y = g.op(Maximum::default(), &[x, low]);
                        g.op(Minimum::default(), &[high, y])
                    }
                    1 => {
                        let y = g.op(Minimum::default(), &[x, high]);
                        g.op(Maximum::default(), &[y, low])
                    }
                    2 => {
                        let y = g.op(Relu, &[x]);
                        g.op(Minimum::default(), &[y, high])
                    }
                    _ => {
                        let y = g.op(Clamp { min: -3.0, max: 3.0 }, &[x]);
                        g.op(Clamp { min: -1.0, max: 4.0 }, &[y])
                    }
                }
            });
        }
    }

    #[test]
    fn ranges_that_do_not_meet_stay() {
        stays(&FuseClamp, "do not meet", |g| {
            let x = g.input(&[4]);
            let (low, high) = (g.c(3.0), g.c(2.0));
            let y = g.op(Maximum::default(), &[x, low]);
            g.op(Minimum::default(), &[y, high])
        });
    }

    #[test]
    fn limits_by_element_and_limits_that_widen_stay() {
        stays(&FuseClamp, "", |g| {
            let x = g.input(&[4]);
            let (low, high) = (g.noise(&[4], -1.0), g.c(2.0));
            let y = g.op(Maximum::default(), &[x, low]);
            g.op(Minimum::default(), &[y, high])
        });
        stays(&FuseClamp, "", |g| {
            let x = g.input(&[4]);
            let (low, high) = (g.c(-1.0), g.tensor(&[2, 1], &[2.0, 2.0]));
            let y = g.op(Maximum::default(), &[x, low]);
            g.op(Minimum::default(), &[y, high])
        });
        stays(&FuseClamp, "Maximum `Maximum3` has another user", |g| {
            let x = g.input(&[4]);
            let (low, high) = (g.c(-1.0), g.c(2.0));
            let y = g.op(Maximum::default(), &[x, low]);
            let z = g.op(Minimum::default(), &[y, high]);
            g.op(Add::default(), &[y, z])
        });
    }
}
