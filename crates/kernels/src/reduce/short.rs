//! Reductions of a few neighbours each, such as the two parts of complex numbers: a vector would be nearly empty.

use super::{Reduction, Shape, merge};
use crate::simd::Readable;

/// Whether elements that meet are neighbours, and few.
pub(super) fn fits(shape: &Shape) -> bool {
    shape.width == 1 && shape.step == 1 && shape.folded.is_empty() && (2..=4).contains(&shape.len)
}

/// Folds `x`, which has `len` elements for each of `out`.
pub(super) fn fold<T: Readable>(op: Reduction, len: usize, x: &[T], out: &mut [f32]) {
    match len {
        2 => fold_each::<T, 2>(op, x, out),
        3 => fold_each::<T, 3>(op, x, out),
        _ => fold_each::<T, 4>(op, x, out),
    }
}

fn fold_each<T: Readable, const N: usize>(op: Reduction, x: &[T], out: &mut [f32]) {
    // One loop for each, so that the operation is known in it.
    match op {
        Reduction::Sum => run(x, out, |few: [f64; N]| few.iter().sum()),
        Reduction::Mean => run(x, out, |few: [f64; N]| few.iter().sum::<f64>() / N as f64),
        Reduction::L1 => run(x, out, |few: [f64; N]| few.iter().map(|x| x.abs()).sum()),
        Reduction::L2 => run(x, out, |few: [f64; N]| few.iter().map(|x| x * x).sum::<f64>().sqrt()),
        Reduction::SumSquare => run(x, out, |few: [f64; N]| few.iter().map(|x| x * x).sum()),
        Reduction::Prod => run(x, out, |few: [f64; N]| few.iter().product()),
        Reduction::Max => run(x, out, |few: [f64; N]| few.into_iter().fold(f64::NEG_INFINITY, |a, b| merge(op, a, b))),
        Reduction::Min => run(x, out, |few: [f64; N]| few.into_iter().fold(f64::INFINITY, |a, b| merge(op, a, b))),
    }
}

fn run<T: Readable, const N: usize>(x: &[T], out: &mut [f32], f: impl Fn([f64; N]) -> f64) {
    for (y, few) in out.iter_mut().zip(x.as_chunks::<N>().0) {
        *y = f(few.map(|x| f64::from(x.wide()))) as f32;
    }
}
