//! Gelu written out becomes Gelu, in any order of its factors:
//!
//! ```text
//! 0.5 * x * (1 + Erf(x / sqrt(2)))                             ->  Gelu(x) {ERF}
//! 0.5 * x * (1 + Tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))    ->  Gelu(x) {TANH}
//! ```
//!
//! `x * Sigmoid(1.702 * x)` is another function and is no Gelu here.

use super::look::{fuse, is_float};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::Gelu;
use carafe_ops::activation::gelu::GeluApproximation;
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::math::{Erf, Tanh};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// Gelu written out becomes Gelu.
#[derive(Clone, Copy, Debug)]
pub struct FuseGelu;

impl Rewrite for FuseGelu {
    fn name(&self) -> &'static str {
        "fuse_gelu"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let arithmetic = model.op_at::<Multiply>(root).is_some() || model.op_at::<Add>(root).is_some();
        let Some((x, approximation_mode)) = find(model, root).filter(|_| arithmetic) else {
            return Ok(Outcome::NoMatch);
        };
        fuse(model, root, &[x], Gelu { approximation_mode }, &[x])
    }
}

fn find(model: &Model, root: NodeId) -> Option<(Value, GeluApproximation)> {
    sources(model, root.into()).into_iter().find_map(|t| {
        let (node, mode) = match (model.producer::<Erf>(t), model.producer::<Tanh>(t)) {
            (Some((node, _)), _) => (node, GeluApproximation::Erf),
            (_, Some((node, _))) => (node, GeluApproximation::Tanh),
            _ => return None,
        };
        let argument = model.input(node, 0)?;
        let x = sources(model, argument).into_iter().find(|&x| {
            is_float(model, x)
                && Poly::of(model, argument, x, None).is_some_and(|p| is_argument(&p, mode))
                && Poly::of(model, root.into(), x, Some(t)).is_some_and(|p| p.is(&[(0.5, 1, 0), (0.5, 1, 1)]))
        })?;
        Some((x, mode))
    })
}

fn is_argument(p: &Poly, mode: GeluApproximation) -> bool {
    let k = FRAC_2_PI.sqrt();
    match mode {
        GeluApproximation::Erf => p.is(&[(FRAC_1_SQRT_2, 1, 0)]),
        GeluApproximation::Tanh => p.is(&[(k, 1, 0), (0.044715 * k, 3, 0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, stays};
    use super::*;
    use carafe_ops::activation::Sigmoid;
    use carafe_ops::arithmetic::{Divide, Power};

    #[test]
    fn the_factors_stand_in_any_order() {
        for spelling in 0..4 {
            fires(&FuseGelu, "Gelu", |g| {
                let x = g.input(&[2, 3]);
                let (root2, one, half) = (g.c(2f64.sqrt()), g.c(1.0), g.c(0.5));
                let u = g.op(Divide::default(), &[x, root2]);
                let erf = g.op(Erf, &[u]);
                let sum = g.op(Add::default(), &[one, erf]);
                match spelling {
                    0 => {
                        let y = g.op(Multiply::default(), &[x, sum]);
                        g.op(Multiply::default(), &[y, half])
                    }
                    1 => {
                        let y = g.op(Multiply::default(), &[half, x]);
                        g.op(Multiply::default(), &[sum, y])
                    }
                    2 => {
                        let y = g.op(Multiply::default(), &[half, sum]);
                        g.op(Multiply::default(), &[y, x])
                    }
                    _ => {
                        let y = g.op(Multiply::default(), &[half, erf]);
                        let y = g.op(Add::default(), &[y, half]);
                        g.op(Multiply::default(), &[y, x])
                    }
                }
            });
        }
    }

    #[test]
    fn the_tanh_formula_with_a_power_or_with_products() {
        for spelling in 0..2 {
            fires(&FuseGelu, "Gelu", |g| {
                let x = g.input(&[2, 3]);
                let (k, a, one, half) = (g.c(0.7978845608), g.c(0.044715), g.c(1.0), g.c(0.5));
                let u = if spelling == 0 {
                    let three = g.c(3.0);
                    let cube = g.op(Power::default(), &[x, three]);
                    let cube = g.op(Multiply::default(), &[a, cube]);
                    let sum = g.op(Add::default(), &[x, cube]);
                    g.op(Multiply::default(), &[sum, k])
                } else {
                    let square = g.op(Multiply::default(), &[x, x]);
                    let square = g.op(Multiply::default(), &[a, square]);
                    let sum = g.op(Add::default(), &[one, square]);
                    let line = g.op(Multiply::default(), &[x, k]);
                    g.op(Multiply::default(), &[line, sum])
                };
                let t = g.op(Tanh, &[u]);
                let sum = g.op(Add::default(), &[t, one]);
                let y = g.op(Multiply::default(), &[x, half]);
                g.op(Multiply::default(), &[y, sum])
            });
        }
    }

    #[test]
    fn a_value_inside_that_others_read_stays() {
        stays(&FuseGelu, "Erf `Erf3` has another user", |g| {
            let x = g.input(&[4]);
            let k = g.c(FRAC_1_SQRT_2);
            let u = g.op(Multiply::default(), &[x, k]);
            let erf = g.op(Erf, &[u]);
            let half = g.c(0.5);
            let y = g.op(Multiply::default(), &[erf, half]);
            let y = g.op(Add::default(), &[y, half]);
            let y = g.op(Multiply::default(), &[y, x]);
            let twice = g.op(Add::default(), &[erf, erf]);
            g.op(Divide::default(), &[y, twice])
        });
    }

    #[test]
    fn other_functions_stay() {
        // The factor of the sigmoid form, a wrong factor, and a constant that widens the data.
        stays(&FuseGelu, "", |g| {
            let x = g.input(&[4]);
            let k = g.c(1.702);
            let u = g.op(Multiply::default(), &[x, k]);
            let s = g.op(Sigmoid, &[u]);
            g.op(Multiply::default(), &[x, s])
        });
        for (factor, shape) in [(0.6, &[][..]), (0.5, &[1, 1])] {
            stays(&FuseGelu, "", |g| {
                let x = g.input(&[4]);
                let k = g.c(FRAC_1_SQRT_2);
                let u = g.op(Multiply::default(), &[x, k]);
                let erf = g.op(Erf, &[u]);
                let half = g.tensor(shape, &[factor]);
                let y = g.op(Multiply::default(), &[erf, half]);
                let y = g.op(Add::default(), &[y, half]);
                g.op(Multiply::default(), &[y, x])
            });
        }
    }
}
