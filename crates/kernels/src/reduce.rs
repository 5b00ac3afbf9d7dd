//! Reductions of a row-major array over any of its axes. Sums are kept in lanes of f32 for a short while and then in f64, so
//! a mean over a million pixels has the digits of one over ten. NaN never wins a maximum or minimum.

mod arg;
mod bytes;
mod fold;
mod short;
mod typed;

pub use arg::{ArgReduce, Extreme};
pub use bytes::{MOST_PIXELS, mean_bytes};
pub use typed::{IntegerReduction, reduce_bools, reduce_integers};

use crate::cast::{Brain, Half};
use crate::eltwise::pieces;
use crate::simd::Readable;
use crate::{Exec, Halves, SharedMut, part_of};
use fold::{Job, TILE};

/// What becomes of the elements that meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Sum,
    /// 0 of nothing.
    Mean,
    Prod,
    /// Minus infinity of nothing.
    Max,
    /// Plus infinity of nothing.
    Min,
    /// Sum of absolute values.
    L1,
    /// Root of the sum of squares.
    L2,
    SumSquare,
}

/// Partial results of a reduction that is cut along its folded axes.
const PARTS: usize = 2048;

/// A reduction of given dimensions over given axes. No axes at all fold every element alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    op: Reduction,
    shape: Shape,
}

/// How the joined axes lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Sizes and steps of the loops around, over kept and over folded axes.
    pub kept: Vec<(usize, usize)>,
    pub folded: Vec<(usize, usize)>,
    /// The inmost folded axis: its size and step; step 1 when it is the last of all.
    pub len: usize,
    pub step: usize,
    /// Columns that are kept after it, 1 when there are none.
    pub width: usize,
    /// Elements of the input.
    pub total: usize,
}

impl Shape {
    /// Panics when an axis is not one of the dimensions. Repeated axes count once.
    pub(crate) fn new(dims: &[usize], axes: &[usize]) -> Shape {
        assert!(axes.iter().all(|&a| a < dims.len()), "axes {axes:?} of {dims:?}");
        // Neighbours of one kind are one axis.
        let mut joined: Vec<(usize, bool)> = vec![];
        for (axis, &n) in dims.iter().enumerate().filter(|(_, n)| **n != 1) {
            let folded = axes.contains(&axis);
            match joined.last_mut() {
                Some(last) if last.1 == folded => last.0 *= n,
                _ => joined.push((n, folded)),
            }
        }
        let mut step = 1;
        let mut steps: Vec<(usize, usize, bool)> = vec![];
        for &(n, folded) in joined.iter().rev() {
            steps.push((n, step, folded));
            step *= n;
        }
        steps.reverse();
        let width = steps.pop_if(|s| !s.2).map_or(1, |s| s.0);
        let (len, step) = steps.pop_if(|s| s.2).map_or((1, width), |s| (s.0, s.1));
        let of = |kind: bool| steps.iter().filter(|s| s.2 == kind).map(|s| (s.0, s.1)).collect();
        Shape { kept: of(false), folded: of(true), len, step, width, total: dims.iter().product() }
    }
    /// Turns of the loops over kept axes.
    pub(crate) fn outer(&self) -> usize {
        self.kept.iter().map(|k| k.0).product()
    }
    /// Elements of the output.
    pub(crate) fn out_len(&self) -> usize {
        self.outer() * self.width
    }
    /// Elements of the input for each of the output.
    pub(crate) fn folds(&self) -> usize {
        self.len * self.folded.iter().map(|f| f.0).product::<usize>()
    }
}

/// Where turn `i` of some loops begins.
pub(crate) fn position(loops: &[(usize, usize)], mut i: usize) -> usize {
    let mut at = 0;
    for &(n, step) in loops.iter().rev() {
        at += i % n * step;
        i /= n;
    }
    at
}

impl Reduce {
    /// Panics when an axis is not one of the dimensions.
    pub fn new(op: Reduction, dims: &[usize], axes: &[usize]) -> Reduce {
        Reduce { op, shape: Shape::new(dims, axes) }
    }
    /// Elements of the output.
    pub fn out_len(&self) -> usize {
        self.shape.out_len()
    }

    pub fn run(&self, exec: &Exec<'_>, x: &[f32], out: &mut [f32]) {
        self.run_typed(exec, x, out);
    }

    /// Of the bits of numbers of 16 bits; the results are floats.
    pub fn run_halves(&self, exec: &Exec<'_>, halves: Halves, x: &[u16], out: &mut [f32]) {
        match halves {
            Halves::Bf16 => self.run_typed::<Brain>(exec, bytemuck::cast_slice(x), out),
            Halves::F16 => self.run_typed::<Half>(exec, bytemuck::cast_slice(x), out),
        }
    }

    fn run_typed<T: Readable>(&self, exec: &Exec<'_>, x: &[T], out: &mut [f32]) {
        assert_eq!(x.len(), self.shape.total, "the input");
        assert_eq!(out.len(), self.out_len(), "the output");
        let (shape, op) = (&self.shape, self.op);
        if out.is_empty() {
            return;
        }
        let folds = shape.folds();
        if short::fits(shape) {
            let (chunks, to) = (pieces(exec, x.len()).min(out.len()), SharedMut::new(out));
            return exec.each(chunks, |chunk, _| {
                let part = part_of(to.len(), chunks, chunk);
                // SAFETY: chunks are parts of their own.
                let out = unsafe { to.part(part.clone()) };
                short::fold(op, folds, &x[part.start * folds..part.end * folds], out);
            });
        }
        let job = Job { shape, op, x };
        let across = shape.width.div_ceil(TILE);
        let units = shape.outer() * across;
        let chunks = pieces(exec, x.len());
        if units < exec.threads() && chunks > 1 && out.len() * exec.threads() <= PARTS && folds > 1 {
            return self.run_cut(exec, &job, out);
        }
        let chunks = chunks.min(units);
        let to = SharedMut::new(out);
        exec.each(chunks, |chunk, _| {
            job.units(exec.isa, part_of(units, chunks, chunk), 0..folds, &|at: usize, values: &[f64]| {
                // SAFETY: units write columns of their own.
                let out = unsafe { to.part(at..at + values.len()) };
                out.iter_mut().zip(values).for_each(|(y, &v)| *y = finish(op, v, folds));
            });
        });
    }

    // Few results of many elements: threads share the elements, then one adds up.
    fn run_cut<T: Readable>(&self, exec: &Exec<'_>, job: &Job<'_, T>, out: &mut [f32]) {
        let (folds, n, parts) = (self.shape.folds(), out.len(), exec.threads());
        let units = self.shape.outer() * self.shape.width.div_ceil(TILE);
        let mut values = [0.0f64; PARTS];
        let shared = SharedMut::new(&mut values[..n * parts]);
        exec.each(parts, |part, _| {
            job.units(exec.isa, 0..units, part_of(folds, parts, part), &|at: usize, values: &[f64]| {
                let start = part * n + at;
                // SAFETY: parts have values of their own.
                unsafe { shared.part(start..start + values.len()) }.copy_from_slice(values);
            });
        });
        for (i, y) in out.iter_mut().enumerate() {
            let all = (0..parts).map(|part| values[part * n + i]);
            let value = all.reduce(|a, b| merge(self.op, a, b)).unwrap_or(0.0);
            *y = finish(self.op, value, folds);
        }
    }
}

/// What two parts are together.
pub(crate) fn merge(op: Reduction, a: f64, b: f64) -> f64 {
    match op {
        Reduction::Max => {
            if a < b {
                b
            } else {
                a
            }
        }
        Reduction::Min => {
            if b < a {
                b
            } else {
                a
            }
        }
        Reduction::Prod => a * b,
        _ => a + b,
    }
}

fn finish(op: Reduction, value: f64, folds: usize) -> f32 {
    match op {
        Reduction::Mean if folds == 0 => 0.0,
        Reduction::Mean => (value / folds as f64) as f32,
        Reduction::L2 => value.sqrt() as f32,
        _ => value as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_axes_of_one_kind_are_joined() {
        let shape = |dims: &[usize], axes: &[usize]| {
            let s = Shape::new(dims, axes);
            (s.kept, s.folded, s.len, s.step, s.width)
        };
        assert_eq!(shape(&[2, 3, 4], &[1, 2]), (vec![(2, 12)], vec![], 12, 1, 1));
        assert_eq!(shape(&[2, 3, 4, 5], &[1, 2]), (vec![(2, 60)], vec![], 12, 5, 5));
        assert_eq!(shape(&[2, 3, 4], &[0, 2]), (vec![(3, 4)], vec![(2, 12)], 4, 1, 1));
        assert_eq!(shape(&[2, 3], &[]), (vec![], vec![], 1, 6, 6));
        assert_eq!(shape(&[], &[]), (vec![], vec![], 1, 1, 1));
    }
}
