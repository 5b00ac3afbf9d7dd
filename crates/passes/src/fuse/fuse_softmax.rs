//! ```text
//! e = Exp(x - ReduceMax(x)),  e / ReduceSum(e)   ->  Softmax(x)
//! ```
//!
//! over one and the same axis. Without the maximum the sum may overflow where Softmax does not, so that form stays.

use super::look::{fuse, is_float, made_by};
use super::parts::{quotient, reduced};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite};
use carafe_ops::activation::Softmax;
use carafe_ops::arithmetic::Subtract;
use carafe_ops::math::Exp;
use carafe_ops::reduce::{ReduceMax, ReduceSum};

/// Softmax written out becomes Softmax.
#[derive(Clone, Copy, Debug)]
pub struct FuseSoftmax;

impl Rewrite for FuseSoftmax {
    fn name(&self) -> &'static str {
        "fuse_softmax"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((e, sum)) = quotient(model, root) else { return Ok(Outcome::NoMatch) };
        let Some(&[u]) = made_by::<Exp>(model, e) else { return Ok(Outcome::NoMatch) };
        let Some((_, axes)) = reduced::<ReduceSum>(model, sum, |r| r.keep_dims).filter(|(data, _)| *data == e) else {
            return Ok(Outcome::NoMatch);
        };
        let &[axis] = &axes[..] else { return Ok(Outcome::skip("the sum is over several axes")) };
        let Some(&[x, largest]) = made_by::<Subtract>(model, u) else {
            return Ok(Outcome::skip("no maximum is subtracted before the exponent"));
        };
        match reduced::<ReduceMax>(model, largest, |r| r.keep_dims) {
            Some((data, of)) if data == x && of == axes && is_float(model, x) => {
                fuse(model, root, &[x], Softmax { axis }, &[x])
            }
            _ => Ok(Outcome::skip("what is subtracted before the exponent is not the maximum along the axis")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_graph::Value;
    use carafe_ops::arithmetic::{Add, Divide};

    fn spelled(g: &mut Sketch, max: &[i64], sum: &[i64]) -> (Value, Value) {
        let x = g.input(&[2, 3, 4]);
        let (max, sum) = (g.ints(max), g.ints(sum));
        let largest = g.op(ReduceMax { keep_dims: true }, &[x, max]);
        let u = g.op(Subtract::default(), &[x, largest]);
        let e = g.op(Exp, &[u]);
        let sum = g.op(ReduceSum { keep_dims: true }, &[e, sum]);
        (g.op(Divide::default(), &[e, sum]), e)
    }

    #[test]
    fn axes_from_the_front_and_from_the_end() {
        fires(&FuseSoftmax, "Softmax", |g| spelled(g, &[-1], &[2]).0);
        fires(&FuseSoftmax, "Softmax", |g| spelled(g, &[1], &[1]).0);
    }

    #[test]
    fn others_stay() {
        stays(&FuseSoftmax, "not the maximum along the axis", |g| spelled(g, &[1], &[2]).0);
        stays(&FuseSoftmax, "several axes", |g| spelled(g, &[1, 2], &[1, 2]).0);
        stays(&FuseSoftmax, "Exp `Exp5` has another user", |g| {
            let (y, e) = spelled(g, &[1], &[1]);
            g.op(Add::default(), &[y, e])
        });
        stays(&FuseSoftmax, "no maximum is subtracted", |g| {
            let x = g.input(&[2, 3]);
            let axis = g.ints(&[1]);
            let e = g.op(Exp, &[x]);
            let sum = g.op(ReduceSum { keep_dims: true }, &[e, axis]);
            g.op(Divide::default(), &[e, sum])
        });
    }
}
