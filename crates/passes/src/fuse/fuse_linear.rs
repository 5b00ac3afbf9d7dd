//! Chains of factors and shifts by constants become one factor and one shift:
//!
//! ```text
//! (x + a) + b        ->  x + (a + b)
//! (x * a) * b        ->  x * (a * b)
//! (x * a + b) * c    ->  x * (a * c) + b * c
//! (x + a) * b + c    ->  x * b + (a * b + c)
//! ```
//!
//! Division by a constant is a factor, subtraction of one a shift. Floats only. A large shift that is taken back rounds its
//! data on purpose, so such a pair stays.

use super::linear::{Plain, Step, step};
use super::look::{put_in_place, read_outside};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::{Add, Multiply};

/// Factors and shifts by constants in a row become one of each.
#[derive(Clone, Copy, Debug)]
pub struct FuseLinear;

/// `x`, then a factor, then a shift.
struct Chain {
    x: Value,
    times: Option<Plain>,
    plus: Option<Plain>,
}

impl Rewrite for FuseLinear {
    fn name(&self) -> &'static str {
        "fuse_linear"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let chain = match find(model, root) {
            Ok(Some(chain)) => chain,
            Ok(None) => return Ok(Outcome::NoMatch),
            Err(skip) => return Ok(skip),
        };
        let ty = model.fact(root.into()).ty;
        if ![&chain.times, &chain.plus].into_iter().flatten().all(|c| c.fits(ty)) {
            return Ok(Outcome::skip(format!("the joined constants do not fit {ty}")));
        }
        if let Some(skip) = read_outside(model, root, &[chain.x]) {
            return Ok(skip);
        }
        let name = model.node(root).name().to_string();
        let mut y = chain.x;
        if let Some(c) = &chain.times {
            let c = model.constant(&format!("{name}/factor"), c.tensor(ty)?)?;
            y = model.add(format!("{name}/Multiply"), Multiply::default(), &[y, c])?.into();
        }
        if let Some(c) = &chain.plus {
            let c = model.constant(&format!("{name}/shift"), c.tensor(ty)?)?;
            y = model.add(format!("{name}/Add"), Add::default(), &[y, c])?.into();
        }
        put_in_place(model, root, y.node)
    }
}

fn find(model: &Model, root: NodeId) -> std::result::Result<Option<Chain>, Outcome> {
    let Some((below, outer)) = step(model, root) else { return Ok(None) };
    let Some((x, inner)) = at(model, below) else { return Ok(None) };
    let widens = || Outcome::skip("the joined constant would be larger than both");
    let join = |a: &Plain, b: &Plain, f: fn(f64, f64) -> f64| a.zip(b, f).ok_or_else(widens);
    let chain = match (inner, outer) {
        (Step::Plus(a), Step::Plus(b)) => {
            let sum = join(&a, &b, |a, b| a + b)?;
            if a.zip(&b, rounds).is_none_or(|r| r.values.iter().any(|r| *r != 0.0)) {
                return Err(Outcome::skip("a large shift is taken back, which rounds the data"));
            }
            Chain { x, times: None, plus: Some(sum) }
        }
        (Step::Times(a), Step::Times(b)) => Chain { x, times: Some(join(&a, &b, |a, b| a * b)?), plus: None },
        (Step::Plus(b), Step::Times(c)) => match at(model, x) {
            Some((x, Step::Times(a))) => {
                let (times, plus) = (join(&a, &c, |a, c| a * c)?, join(&b, &c, |b, c| b * c)?);
                Chain { x, times: Some(times), plus: Some(plus) }
            }
            _ => return Ok(None),
        },
        (Step::Times(b), Step::Plus(c)) => match at(model, x) {
            Some((x, Step::Plus(a))) => {
                let product = join(&a, &b, |a, b| a * b)?;
                if product.zip(&c, rounds).is_none_or(|r| r.values.iter().any(|r| *r != 0.0)) {
                    return Err(Outcome::skip("a large shift is taken back, which rounds the data"));
                }
                Chain { x, plus: Some(join(&product, &c, |a, c| a + c)?), times: Some(b) }
            }
            _ => return Ok(None),
        },
    };
    Ok(Some(chain))
}

fn at(model: &Model, v: Value) -> Option<(Value, Step)> {
    step(model, v.node).filter(|_| v.port == 0)
}

// 1 where two large numbers cancel.
fn rounds(a: f64, b: f64) -> f64 {
    let large = a.abs().max(b.abs());
    f64::from(u8::from(large > 1e3 && (a + b).abs() < 1e-3 * large))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::arithmetic::{Divide, Subtract};

    #[test]
    fn shifts_and_factors_join() {
        fires(&FuseLinear, "Add", |g| {
            let x = g.input(&[2, 3, 4]);
            let (a, b, c) = (g.noise(&[3, 1], 1.0), g.noise(&[1, 3, 1], 2.0), g.c(0.5));
            let y = g.op(Add::default(), &[a, x]);
            let y = g.op(Subtract::default(), &[y, b]);
            g.op(Add::default(), &[y, c])
        });
        fires(&FuseLinear, "Multiply", |g| {
            let x = g.input(&[2, 3, 4]);
            let (a, b) = (g.noise(&[3, 1], 1.0), g.noise(&[1, 3, 1], 2.0));
            let y = g.op(Multiply::default(), &[x, a]);
            g.op(Divide::default(), &[y, b])
        });
    }

    #[test]
    fn three_steps_become_two() {
        for first_plus in [false, true] {
            fires(&FuseLinear, "Multiply Add", |g| {
                let x = g.input(&[2, 3]);
                let (a, b, c) = (g.noise(&[3], 1.0), g.noise(&[1], 2.0), g.noise(&[3], 0.5));
                if first_plus {
                    let y = g.op(Add::default(), &[x, a]);
                    let y = g.op(Multiply::default(), &[y, b]);
                    return g.op(Add::default(), &[y, c]);
                }
                let y = g.op(Multiply::default(), &[x, a]);
                let y = g.op(Add::default(), &[y, b]);
                g.op(Multiply::default(), &[y, c])
            });
        }
    }

    #[test]
    fn constants_of_a_higher_rank_still_widen_the_data() {
        fires(&FuseLinear, "Add", |g| {
            let x = g.input(&[3]);
            let (a, b) = (g.noise(&[1, 1, 3], 1.0), g.noise(&[3], 2.0));
            let y = g.op(Add::default(), &[x, a]);
            g.op(Add::default(), &[y, b])
        });
    }

    #[test]
    fn others_stay() {
        stays(&FuseLinear, "larger than both", |g| {
            let x = g.input(&[2, 3, 4]);
            let (a, b) = (g.noise(&[3, 1], 1.0), g.noise(&[4], 2.0));
            let y = g.op(Add::default(), &[x, a]);
            g.op(Add::default(), &[y, b])
        });
        stays(&FuseLinear, "rounds the data", |g| {
            let x = g.input(&[2]);
            let magic = g.c(12582912.0);
            let y = g.op(Add::default(), &[x, magic]);
            g.op(Subtract::default(), &[y, magic])
        });
        stays(&FuseLinear, "do not fit f32", |g| {
            let x = g.input(&[2]);
            let (a, b) = (g.c(1e30), g.c(1e30));
            let y = g.op(Multiply::default(), &[x, a]);
            g.op(Multiply::default(), &[y, b])
        });
        stays(&FuseLinear, "Add `Add3` has another user", |g| {
            let x = g.input(&[2]);
            let (a, b) = (g.c(1.0), g.c(2.0));
            let y = g.op(Add::default(), &[x, a]);
            let z = g.op(Add::default(), &[y, b]);
            g.op(Multiply::default(), &[y, z])
        });
        stays(&FuseLinear, "", |g| {
            let x = g.input(&[2]);
            let (a, b) = (g.c(1.0), g.c(2.0));
            let y = g.op(Add::default(), &[x, a]);
            g.op(Subtract::default(), &[b, y])
        });
    }
}
