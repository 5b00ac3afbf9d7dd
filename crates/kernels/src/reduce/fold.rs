//! The folding itself: of a contiguous run, or of rows into columns.

use super::{Reduction, Shape, merge, position};
use crate::Isa;
use crate::simd::{Readable, Simd, dispatch};
use std::ops::Range;

/// Columns of one unit.
pub(super) const TILE: usize = 128;
/// Additions of a lane before it is emptied into f64.
const SHORT: usize = 64;

/// What is folded.
#[derive(Clone, Copy)]
pub(super) struct Job<'a, T> {
    pub shape: &'a Shape,
    pub op: Reduction,
    pub x: &'a [T],
}

/// A reduction in all widths: what it starts from, and one more element.
trait Fold: Copy {
    const FIRST: f32;
    fn add<S: Simd>(sum: S, x: S) -> S;
    /// Two parts together.
    fn join<S: Simd>(a: S, b: S) -> S;
    fn exact(x: f64) -> f64;
}

macro_rules! folds {
    ($($Name:ident from $first:expr, |$sum:ident, $x:ident| $body:expr, |$a:ident, $b:ident| $join:expr, |$e:ident| $exact:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $Name;
        impl Fold for $Name {
            const FIRST: f32 = $first;
            #[inline(always)]
            fn add<S: Simd>($sum: S, $x: S) -> S {
                $body
            }
            #[inline(always)]
            fn join<S: Simd>($a: S, $b: S) -> S {
                $join
            }
            #[inline(always)]
            fn exact($e: f64) -> f64 {
                $exact
            }
        }
    )*};
}

folds! {
    Sum from 0.0, |sum, x| sum + x, |a, b| a + b, |x| x;
    Size from 0.0, |sum, x| sum + x.abs(), |a, b| a + b, |x| x.abs();
    Square from 0.0, |sum, x| x.fma(x, sum), |a, b| a + b, |x| x * x;
    Max from f32::NEG_INFINITY, |sum, x| x.max(sum), |a, b| a.max(b), |x| x;
    Min from f32::INFINITY, |sum, x| x.min(sum), |a, b| a.min(b), |x| x;
}

impl<T: Readable> Job<'_, T> {
    /// Folds elements `folds` of each unit and hands its values on, with the position of the first in the output. A unit is up
    /// to [`TILE`] neighbouring columns of the output.
    pub(super) fn units(&self, isa: Isa, units: Range<usize>, folds: Range<usize>, put: &dyn Fn(usize, &[f64])) {
        macro_rules! run {
            ($fold:ident) => {
                // SAFETY: a `Shape` reaches no further than its total, which is the length of the input.
                unsafe { units_of::<$fold, T>(isa, *self, units, folds, put) }
            };
        }
        match self.op {
            Reduction::Sum | Reduction::Mean => run!(Sum),
            Reduction::L1 => run!(Size),
            Reduction::L2 | Reduction::SumSquare => run!(Square),
            Reduction::Max => run!(Max),
            Reduction::Min => run!(Min),
            Reduction::Prod => {
                for unit in units {
                    self.exact(unit, &folds, 1.0, |x| x, put);
                }
            }
        }
    }

    /// Where a unit begins in the input and the output, and its columns.
    #[inline(always)]
    fn position(&self, unit: usize) -> (usize, usize, usize) {
        let across = self.shape.width.div_ceil(TILE);
        let (outer, column) = (unit / across, unit % across * TILE);
        let at = position(&self.shape.kept, outer) + column;
        (at, outer * self.shape.width + column, TILE.min(self.shape.width - column))
    }

    /// Slowly, in f64 throughout.
    fn exact(
        &self,
        unit: usize,
        folds: &Range<usize>,
        first: f64,
        f: impl Fn(f64) -> f64,
        put: &dyn Fn(usize, &[f64]),
    ) {
        let (at, to, columns) = self.position(unit);
        let mut values = [first; TILE];
        for k in folds.clone() {
            let row = at + position(&self.shape.folded, k / self.shape.len) + k % self.shape.len * self.shape.step;
            for (value, &x) in values.iter_mut().zip(&self.x[row..row + columns]) {
                *value = merge(self.op, *value, f(f64::from(x.wide())));
            }
        }
        put(to, &values[..columns]);
    }
}

unsafe fn units_of<F: Fold, T: Readable>(
    isa: Isa,
    job: Job<'_, T>,
    units: Range<usize>,
    folds: Range<usize>,
    put: &dyn Fn(usize, &[f64]),
) {
    // SAFETY: `dispatch!` checks the machine; positions of the shape are inside of the input.
    unsafe {
        dispatch!(isa, <'a, S, F: Fold, T: Readable>(job: Job<'a, T>, units: Range<usize>, folds: Range<usize>, put: &'a dyn Fn(usize, &[f64])) {
            for unit in units {
                let (at, to, columns) = job.position(unit);
                let mut values = [f64::from(F::FIRST); TILE];
                let mut k = folds.start;
                while k < folds.end {
                    let within = k % job.shape.len;
                    let n = (job.shape.len - within).min(folds.end - k);
                    let start = at + position(&job.shape.folded, k / job.shape.len) + within * job.shape.step;
                    if job.shape.step == 1 && columns == 1 {
                        values[0] = merge(job.op, values[0], run::<S, F, T>(job, &job.x[start..start + n]));
                    } else {
                        rows::<S, F, T>(job, start, n, &mut values[..columns]);
                    }
                    k += n;
                }
                // Squares or sums may leave the range of f32 and come back.
                if values[..columns].iter().all(|v| v.is_finite()) || matches!(job.op, Reduction::Max | Reduction::Min) {
                    put(to, &values[..columns]);
                } else {
                    job.exact(unit, &folds, 0.0, F::exact, put);
                }
            }
        })
    }
}

/// Folds a contiguous run.
#[inline(always)]
unsafe fn run<S: Simd, F: Fold, T: Readable>(job: Job<'_, T>, x: &[T]) -> f64 {
    let first = S::splat(F::FIRST);
    let (mut total, mut i) = (f64::from(F::FIRST), 0);
    while i < x.len() {
        let end = x.len().min(i + 4 * SHORT * S::N);
        let mut lanes = [first; 4];
        // SAFETY: `i + n` stays within the slice.
        unsafe {
            while i + 4 * S::N <= end {
                let at = x.as_ptr().add(i);
                lanes[0] = F::add(lanes[0], T::load::<S>(at));
                lanes[1] = F::add(lanes[1], T::load::<S>(at.add(S::N)));
                lanes[2] = F::add(lanes[2], T::load::<S>(at.add(2 * S::N)));
                lanes[3] = F::add(lanes[3], T::load::<S>(at.add(3 * S::N)));
                i += 4 * S::N;
            }
            while i < end {
                let n = S::N.min(end - i);
                let more = F::add(lanes[0], T::load_first::<S>(x.as_ptr().add(i), S::first(n), n));
                lanes[0] = S::select(S::first(n), more, lanes[0]);
                i += n;
            }
        }
        let both = match job.op {
            Reduction::Max => lanes[0].max(lanes[1]).max(lanes[2].max(lanes[3])).reduce_max(),
            Reduction::Min => -(-lanes[0].min(lanes[1]).min(lanes[2].min(lanes[3]))).reduce_max(),
            _ => ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])).reduce_add(),
        };
        total = merge(job.op, total, f64::from(both));
    }
    total
}

/// Folds `n` rows from `start` on into columns.
#[inline(always)]
unsafe fn rows<S: Simd, F: Fold, T: Readable>(job: Job<'_, T>, start: usize, n: usize, values: &mut [f64]) {
    let (x, step) = (job.x.as_ptr(), job.shape.step);
    let mut column = 0;
    while column < values.len() {
        let width = values.len() - column;
        let mut k = 0;
        while k < n {
            let end = n.min(k + SHORT);
            let mut lanes = [0.0f32; 8 * 16];
            // SAFETY: rows and columns are inside of the input; `lanes` holds eight vectors.
            let done = unsafe {
                let x = x.add(start + column);
                if width >= 8 * S::N {
                    columns::<S, F, T, 8, 1>(x, step, k..end, &mut lanes)
                } else if width >= 4 * S::N {
                    columns::<S, F, T, 4, 2>(x, step, k..end, &mut lanes)
                } else if width >= 2 * S::N {
                    columns::<S, F, T, 2, 4>(x, step, k..end, &mut lanes)
                } else if width >= S::N {
                    columns::<S, F, T, 1, 4>(x, step, k..end, &mut lanes)
                } else {
                    let mut sum = S::splat(F::FIRST);
                    for k in k..end {
                        sum = F::add(sum, T::load_first::<S>(x.add(k * step), S::first(width), width));
                    }
                    sum.store(lanes.as_mut_ptr());
                    width
                }
            };
            for (value, &lane) in values[column..column + done].iter_mut().zip(&lanes) {
                *value = merge(job.op, *value, f64::from(lane));
            }
            k = end;
            if k == n {
                column += done;
            }
        }
        if n == 0 {
            break;
        }
    }
}

/// Folds rows of `A` vectors in `R` chains; gives how many columns that are.
#[inline(always)]
unsafe fn columns<S: Simd, F: Fold, T: Readable, const A: usize, const R: usize>(
    x: *const T,
    step: usize,
    rows: Range<usize>,
    lanes: &mut [f32; 128],
) -> usize {
    let mut sums = [[S::splat(F::FIRST); A]; R];
    let mut k = rows.start;
    while k + R <= rows.end {
        for r in 0..R {
            // SAFETY: the caller's promise.
            let row = unsafe { x.add((k + r) * step) };
            for a in 0..A {
                // SAFETY: as above.
                sums[r][a] = F::add(sums[r][a], unsafe { T::load::<S>(row.add(a * S::N)) });
            }
        }
        k += R;
    }
    while k < rows.end {
        for a in 0..A {
            // SAFETY: as above.
            sums[0][a] = F::add(sums[0][a], unsafe { T::load::<S>(x.add(k * step + a * S::N)) });
        }
        k += 1;
    }
    for a in 0..A {
        let mut sum = sums[0][a];
        for r in 1..R {
            sum = F::join(sum, sums[r][a]);
        }
        // SAFETY: at most eight vectors of at most 16 lanes.
        unsafe { sum.store(lanes.as_mut_ptr().add(a * S::N)) };
    }
    A * S::N
}
