//! Arithmetic seen as a polynomial, so that one formula is recognised in all its spellings: `0.5 * x * (1 + t)`,
//! `x * (0.5 * t + 0.5)` and `x / 2 + x * t / 2` are the same polynomial in `x` and `t`.

use super::look::{made_by, number};
use carafe_graph::{Model, Value};
use carafe_ops::arithmetic::{Add, Divide, Multiply, Power, Subtract};
use carafe_ops::math::Negative;

/// Highest power of `x` that is followed.
const DEGREE: usize = 3;
/// Nested operations that are followed.
const DEPTH: usize = 10;

/// The sum of `c[i][j] * x^i * t^j`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poly {
    c: [[f64; 2]; DEGREE + 1],
    precision: f64,
}

impl Poly {
    /// What `v` is in terms of `x` and, where there is one, of `t`.
    pub(super) fn of(model: &Model, v: Value, x: Value, t: Option<Value>) -> Option<Poly> {
        read(model, v, x, t, DEPTH)
    }

    /// Whether it has just these terms `(coefficient, power of x, power of t)`, as precisely as its constants could be
    /// stored.
    pub(super) fn is(&self, terms: &[(f64, usize, usize)]) -> bool {
        let mut wanted = Poly::zero().c;
        terms.iter().for_each(|&(c, i, j)| wanted[i][j] = c);
        self.c.iter().flatten().zip(wanted.iter().flatten()).all(|(&a, &b)| self.near(a, b))
    }

    /// The factor, if it is a multiple of `x`.
    pub(super) fn multiple_of_x(&self) -> Option<f64> {
        let factor = self.c[1][0];
        self.is(&[(factor, 1, 0)]).then_some(factor)
    }

    fn near(&self, a: f64, b: f64) -> bool {
        (a - b).abs() <= self.precision * b.abs()
    }

    fn zero() -> Poly {
        Poly { c: [[0.0; 2]; DEGREE + 1], precision: 1e-5 }
    }

    fn term(c: f64, i: usize, j: usize) -> Poly {
        let mut p = Poly::zero();
        p.c[i][j] = c;
        p
    }

    fn plus(mut self, other: Poly, sign: f64) -> Poly {
        self.c.iter_mut().flatten().zip(other.c.iter().flatten()).for_each(|(a, b)| *a += sign * b);
        self.precision = self.precision.max(other.precision);
        self
    }

    // `None` when a power is too high.
    fn times(self, other: Poly) -> Option<Poly> {
        let mut product = Poly::zero();
        product.precision = self.precision.max(other.precision);
        let terms = |p: Poly| (0..=DEGREE).flat_map(move |i| (0..2).map(move |j| (i, j, p.c[i][j])));
        for (i, j, a) in terms(self).filter(|t| t.2 != 0.0) {
            for (k, l, b) in terms(other).filter(|t| t.2 != 0.0) {
                *product.c.get_mut(i + k)?.get_mut(j + l)? += a * b;
            }
        }
        Some(product)
    }
}

fn read(model: &Model, v: Value, x: Value, t: Option<Value>, depth: usize) -> Option<Poly> {
    if v == x {
        return Some(Poly::term(1.0, 1, 0));
    }
    if Some(v) == t {
        return Some(Poly::term(1.0, 0, 1));
    }
    if let Some(n) = number(model, v, x) {
        return Some(Poly { precision: n.precision, ..Poly::term(n.value, 0, 0) });
    }
    let depth = depth.checked_sub(1)?;
    let read = |v: Value| read(model, v, x, t, depth);
    if let Some(&[a, b]) = made_by::<Add>(model, v) {
        return Some(read(a)?.plus(read(b)?, 1.0));
    }
    if let Some(&[a, b]) = made_by::<Subtract>(model, v) {
        return Some(read(a)?.plus(read(b)?, -1.0));
    }
    if let Some(&[a, b]) = made_by::<Multiply>(model, v) {
        return read(a)?.times(read(b)?);
    }
    if let Some(&[a, b]) = made_by::<Divide>(model, v) {
        let n = number(model, b, x)?;
        let inverse = Poly { precision: n.precision, ..Poly::term(1.0 / n.value, 0, 0) };
        return read(a)?.times(inverse);
    }
    if let Some(&[a, b]) = made_by::<Power>(model, v) {
        let n = number(model, b, x)?.value;
        let base = read(a)?;
        let n = (1..=DEGREE).find(|i| *i as f64 == n)?;
        return (1..n).try_fold(base, |p, _| p.times(base));
    }
    let &[a] = made_by::<Negative>(model, v)? else { return None };
    Some(Poly::zero().plus(read(a)?, -1.0))
}

/// Every value that plain arithmetic makes `v` from, nearest first, `v` itself included.
pub(super) fn sources(model: &Model, v: Value) -> Vec<Value> {
    let mut found = vec![v];
    let mut at = 0;
    while at < found.len() && found.len() < 24 {
        let v = found[at];
        let inputs = made_by::<Add>(model, v)
            .or_else(|| made_by::<Subtract>(model, v))
            .or_else(|| made_by::<Multiply>(model, v))
            .or_else(|| made_by::<Divide>(model, v))
            .or_else(|| made_by::<Power>(model, v))
            .or_else(|| made_by::<Negative>(model, v));
        for &input in inputs.unwrap_or_default() {
            if !found.contains(&input) {
                found.push(input);
            }
        }
        at += 1;
    }
    found
}
