//! Reductions of integers and booleans. Integers wrap.

use super::{Shape, position};
use crate::eltwise::typed::Numeric;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerReduction {
    Sum,
    /// The wrapped sum divided and cut; 0 of nothing.
    Mean,
    Prod,
    /// Of nothing: what the caller says.
    Max,
    /// Of nothing: what the caller says.
    Min,
}

/// `first` is what nothing gives: 0, 1, or the lowest or highest number. `count` turns a number of elements into `T`.
pub fn reduce_integers<T: Numeric>(
    op: IntegerReduction,
    dims: &[usize],
    axes: &[usize],
    first: T,
    count: impl Fn(usize) -> T,
    x: &[T],
    out: &mut [T],
) {
    use IntegerReduction as R;
    let shape = Shape::new(dims, axes);
    each(&shape, first, x, out, |a, x| match op {
        R::Sum | R::Mean => a.add(x),
        R::Prod => a.mul(x),
        R::Max => {
            if a < x {
                x
            } else {
                a
            }
        }
        R::Min => {
            if x < a {
                x
            } else {
                a
            }
        }
    });
    if op == R::Mean && shape.folds() > 0 {
        let n = count(shape.folds());
        out.iter_mut().for_each(|y| *y = y.div(n));
    }
}

/// Whether all (or any) are not 0.
pub fn reduce_bools(all: bool, dims: &[usize], axes: &[usize], x: &[u8], out: &mut [u8]) {
    let shape = Shape::new(dims, axes);
    each(&shape, u8::from(all), x, out, |a, x| {
        let x = u8::from(x != 0);
        if all { a & x } else { a | x }
    });
}

fn each<T: Copy>(shape: &Shape, first: T, x: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    assert_eq!(x.len(), shape.total, "the input");
    assert_eq!(out.len(), shape.out_len(), "the output");
    out.fill(first);
    if x.is_empty() {
        return;
    }
    for (outer, out) in out.chunks_exact_mut(shape.width).enumerate() {
        let at = position(&shape.kept, outer);
        for k in 0..shape.folds() {
            let row = at + position(&shape.folded, k / shape.len) + k % shape.len * shape.step;
            out.iter_mut().zip(&x[row..row + shape.width]).for_each(|(y, &x)| *y = f(*y, x));
        }
    }
}
