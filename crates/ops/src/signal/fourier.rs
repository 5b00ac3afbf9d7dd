//! The transform itself, in f64. A length is split along its smallest prime factor again and again, so powers of two cost
//! n log n and a prime length n squared.

use crate::index::{around, indices, ravel};
use carafe_graph::Result;

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Complex {
    fn times(self, o: Complex) -> Complex {
        Complex { re: self.re * o.re - self.im * o.im, im: self.re * o.im + self.im * o.re }
    }
    fn plus(self, o: Complex) -> Complex {
        Complex { re: self.re + o.re, im: self.im + o.im }
    }
    pub(super) fn conjugate(self) -> Complex {
        Complex { re: self.re, im: -self.im }
    }
}

/// Pairs of numbers as complex ones.
pub(super) fn from_pairs(data: &[f64]) -> Vec<Complex> {
    data.as_chunks::<2>().0.iter().map(|[re, im]| Complex { re: *re, im: *im }).collect()
}

/// Complex numbers as pairs.
pub(super) fn to_pairs(data: &[Complex]) -> Vec<f64> {
    data.iter().flat_map(|c| [c.re, c.im]).collect()
}

/// A transform of one length and direction, usable many times.
#[derive(Debug)]
pub(super) struct Transform {
    n: usize,
    inverse: bool,
    roots: Vec<Complex>,
}

impl Transform {
    pub(super) fn new(n: usize, inverse: bool) -> Transform {
        let turn = if inverse { std::f64::consts::TAU } else { -std::f64::consts::TAU };
        let root = |k: usize| {
            let (im, re) = (turn * k as f64 / n as f64).sin_cos();
            Complex { re, im }
        };
        Transform { n, inverse, roots: (0..n).map(root).collect() }
    }

    /// Transforms one line; the inverse divides by its length.
    pub(super) fn run(&self, line: &[Complex]) -> Vec<Complex> {
        let mut out = vec![Complex::default(); self.n];
        if self.n > 0 {
            self.split(line, 0, 1, &mut out, &mut Vec::new());
        }
        if self.inverse {
            let scale = 1.0 / self.n as f64;
            out.iter_mut().for_each(|c| *c = Complex { re: c.re * scale, im: c.im * scale });
        }
        out
    }

    // The transform of every `stride`-th element from `start` on; `out` is as long as there are such elements, `column`
    // is room to work in.
    fn split(&self, line: &[Complex], start: usize, stride: usize, out: &mut [Complex], column: &mut Vec<Complex>) {
        let n = out.len();
        if n == 1 {
            out[0] = line[start];
            return;
        }
        let parts = smallest_factor(n);
        let m = n / parts;
        for (q, part) in out.chunks_exact_mut(m).enumerate() {
            self.split(line, start + q * stride, stride * parts, part, column);
        }
        for k in 0..m {
            column.clear();
            column.extend((0..parts).map(|q| out[q * m + k]));
            for r in 0..parts {
                let at = k + r * m;
                let sum = column.iter().enumerate().fold(Complex::default(), |sum, (q, c)| {
                    sum.plus(c.times(self.roots[q * at % n * stride]))
                });
                out[at] = sum;
            }
        }
    }
}

fn smallest_factor(n: usize) -> usize {
    (2..).take_while(|p| p * p <= n).find(|p| n.is_multiple_of(*p)).unwrap_or(n)
}

/// Transforms every line of an axis in place.
pub(super) fn transform_axis(data: &mut [Complex], shape: &[usize], axis: usize, inverse: bool) {
    if data.is_empty() {
        return;
    }
    let (before, n, after) = around(shape, axis);
    let transform = Transform::new(n, inverse);
    let mut line = vec![Complex::default(); n];
    for i in 0..before {
        for j in 0..after {
            let at = |k: usize| (i * n + k) * after + j;
            for (k, c) in line.iter_mut().enumerate() {
                *c = data[at(k)];
            }
            for (k, c) in transform.run(&line).into_iter().enumerate() {
                data[at(k)] = c;
            }
        }
    }
}

/// Cuts or fills with zeros at the end of every axis.
pub(super) fn resized(data: &[Complex], from: &[usize], to: &[usize]) -> Result<Vec<Complex>> {
    if from == to {
        return Ok(data.to_vec());
    }
    let mut out = crate::buffer::filled(to, Complex::default())?;
    let shared: Vec<usize> = from.iter().zip(to).map(|(a, b)| *a.min(b)).collect();
    for index in indices(&shared) {
        out[ravel(&index, to)] = data[ravel(&index, from)];
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: usize) -> Vec<Complex> {
        (0..n).map(|i| Complex { re: (i * i % 7) as f64 - 2.0, im: (i * 3 % 5) as f64 }).collect()
    }

    fn by_definition(x: &[Complex]) -> Vec<Complex> {
        let n = x.len();
        (0..n)
            .map(|k| {
                x.iter().enumerate().fold(Complex::default(), |sum, (i, c)| {
                    let (im, re) = (-std::f64::consts::TAU * (i * k) as f64 / n as f64).sin_cos();
                    sum.plus(c.times(Complex { re, im }))
                })
            })
            .collect()
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        for n in [1, 2, 3, 4, 5, 6, 8, 12, 15, 16, 17, 30, 49, 64] {
            let x = line(n);
            let (found, expected) = (Transform::new(n, false).run(&x), by_definition(&x));
            for (a, b) in found.iter().zip(&expected) {
                assert!((a.re - b.re).abs() < 1e-9 && (a.im - b.im).abs() < 1e-9, "length {n}");
            }
        }
    }

    #[test]
    fn the_inverse_undoes_the_transform() {
        for n in [1, 6, 32] {
            let x = line(n);
            let back = Transform::new(n, true).run(&Transform::new(n, false).run(&x));
            assert!(x.iter().zip(&back).all(|(a, b)| (a.re - b.re).abs() < 1e-12 && (a.im - b.im).abs() < 1e-12));
        }
    }

    #[test]
    fn resizing_cuts_and_fills_each_axis() {
        let x = line(4);
        let y = resized(&x, &[2, 2], &[1, 3]).unwrap();
        assert_eq!(y, [x[0], x[1], Complex::default()]);
    }
}
