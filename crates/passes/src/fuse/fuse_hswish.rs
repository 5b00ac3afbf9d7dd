//! `x` times the sigmoid of three straight lines becomes HSwish. Runs after `fuse_hsigmoid`.
//!
//! ```text
//! x * HSigmoid(x)               ->  HSwish(x)
//! x * Clamp(x + 3, 0, 6) / 6    ->  HSwish(x)
//! ```

use super::fuse_hsigmoid::{limited, limits};
use super::look::{fuse, is_float, made_by};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{HSigmoid, HSwish};
use carafe_ops::arithmetic::{Divide, Multiply};

/// `x` times an HSigmoid becomes HSwish.
#[derive(Clone, Copy, Debug)]
pub struct FuseHSwish;

impl Rewrite for FuseHSwish {
    fn name(&self) -> &'static str {
        "fuse_hswish"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if model.op_at::<Multiply>(root).is_none() && model.op_at::<Divide>(root).is_none() {
            return Ok(Outcome::NoMatch);
        }
        match find(model, root) {
            Some(x) => fuse(model, root, &[x], HSwish, &[x]),
            None => Ok(Outcome::NoMatch),
        }
    }
}

fn find(model: &Model, root: NodeId) -> Option<Value> {
    sources(model, root.into()).into_iter().find_map(|t| {
        let (x, factor) = match made_by::<HSigmoid>(model, t) {
            Some(&[x]) => (x, 1.0),
            _ => (limits(model, t).and_then(|_| limited(model, t, 6.0))?, 1.0 / 6.0),
        };
        let whole = Poly::of(model, root.into(), x, Some(t))?;
        (is_float(model, x) && whole.is(&[(factor, 1, 1)])).then_some(x)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::activation::Clamp;
    use carafe_ops::arithmetic::Add;

    #[test]
    fn the_spellings() {
        for spelling in 0..3 {
            fires(&FuseHSwish, "HSwish", |g| {
                let x = g.input(&[2, 9]);
                let (three, six, sixth) = (g.c(3.0), g.c(6.0), g.c(1.0 / 6.0));
                if spelling == 0 {
                    let s = g.op(HSigmoid, &[x]);
                    return g.op(Multiply::default(), &[s, x]);
                }
                let u = g.op(Add::default(), &[three, x]);
                let t = g.op(Clamp { min: 0.0, max: 6.0 }, &[u]);
                match spelling {
                    1 => {
                        let y = g.op(Multiply::default(), &[x, t]);
                        g.op(Divide::default(), &[y, six])
                    }
                    _ => {
                        let y = g.op(Multiply::default(), &[x, sixth]);
                        g.op(Multiply::default(), &[t, y])
                    }
                }
            });
        }
    }

    #[test]
    fn the_sigmoid_of_something_else_stays() {
        stays(&FuseHSwish, "", |g| {
            let (x, z) = (g.input(&[4]), g.input(&[4]));
            let s = g.op(HSigmoid, &[x]);
            g.op(Multiply::default(), &[s, z])
        });
        stays(&FuseHSwish, "HSigmoid `HSigmoid1` has another user", |g| {
            let x = g.input(&[4]);
            let s = g.op(HSigmoid, &[x]);
            let y = g.op(Multiply::default(), &[s, x]);
            g.op(Add::default(), &[y, s])
        });
    }
}
