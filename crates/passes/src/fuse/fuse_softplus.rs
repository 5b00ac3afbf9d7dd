//! ```text
//! Log(1 + Exp(x))  ->  SoftPlus(x)
//! ```
//!
//! The written-out form is infinite where `Exp` overflows; SoftPlus is not.

use super::look::{fuse, inputs_at, is_float, made_by};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::SoftPlus;
use carafe_ops::math::{Exp, Log};

/// SoftPlus written out becomes SoftPlus.
#[derive(Clone, Copy, Debug)]
pub struct FuseSoftPlus;

impl Rewrite for FuseSoftPlus {
    fn name(&self) -> &'static str {
        "fuse_softplus"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match find(model, root) {
            Some(x) => fuse(model, root, &[x], SoftPlus, &[x]),
            None => Ok(Outcome::NoMatch),
        }
    }
}

fn find(model: &Model, root: NodeId) -> Option<Value> {
    let &[sum] = inputs_at::<Log>(model, root)? else { return None };
    let t = sources(model, sum).into_iter().find(|v| model.producer::<Exp>(*v).is_some())?;
    let &[x] = made_by::<Exp>(model, t)? else { return None };
    let one_more = Poly::of(model, sum, x, Some(t))?.is(&[(1.0, 0, 0), (1.0, 0, 1)]);
    (one_more && is_float(model, x)).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::arithmetic::Add;

    #[test]
    fn one_may_stand_first_or_last() {
        for swapped in [false, true] {
            fires(&FuseSoftPlus, "SoftPlus", |g| {
                let x = g.input(&[2, 5]);
                let e = g.op(Exp, &[x]);
                let one = g.tensor(&[1], &[1.0]);
                let sum = g.op(Add::default(), &if swapped { [one, e] } else { [e, one] });
                g.op(Log, &[sum])
            });
        }
    }

    #[test]
    fn another_number_or_another_user_stays() {
        stays(&FuseSoftPlus, "", |g| {
            let x = g.input(&[3]);
            let e = g.op(Exp, &[x]);
            let two = g.c(2.0);
            let sum = g.op(Add::default(), &[e, two]);
            g.op(Log, &[sum])
        });
        stays(&FuseSoftPlus, "Exp `Exp1` has another user", |g| {
            let x = g.input(&[3]);
            let e = g.op(Exp, &[x]);
            let one = g.c(1.0);
            let sum = g.op(Add::default(), &[e, one]);
            let y = g.op(Log, &[sum]);
            g.op(Add::default(), &[y, e])
        });
    }
}
