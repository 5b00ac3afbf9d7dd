//! Products of few rows with a matrix that lies transposed: each number of the result is a dot product of two runs. Nothing
//! is packed, because everything is read once.

use super::task::Task;
use super::{Micro, SKINNY};
use crate::Isa;
use crate::simd::{Simd, dispatch};

/// Columns whose sums are finished together.
pub(crate) const COLUMNS: usize = 32;

type Sums = [[f32; COLUMNS]; SKINNY];

/// Up to [`SKINNY`] rows of the task's `a` times `columns` runs at `b`, `ldb` apart; all as the task says otherwise.
///
/// # Safety
/// The task's rows have `depth` numbers, each of `columns` runs as many, and `c`, `bias` and `add` hold the result.
pub(crate) unsafe fn dots(isa: Isa, micro: &Micro, task: &Task, rows: usize, ldb: usize) {
    let mut sums: Sums = [[0.0; COLUMNS]; SKINNY];
    let to = &mut sums;
    // SAFETY: the caller's promise is passed on.
    unsafe {
        dispatch!(isa, <'a, S>(task: &'a Task, rows: usize, ldb: usize, to: &'a mut Sums) { all::<S>(task, rows, ldb, to) });
        (micro.store)(task, sums.as_ptr().cast(), rows);
    }
}

/// Every row with every run, four runs at a time.
#[inline(always)]
unsafe fn all<S: Simd>(task: &Task, rows: usize, ldb: usize, sums: &mut Sums) {
    let k = task.depth;
    for (i, sums) in sums.iter_mut().enumerate().take(rows) {
        let mut j = 0;
        while j < task.columns {
            // The last runs are done again rather than fewer at once.
            let first = if task.columns < 4 { j } else { j.min(task.columns - 4) };
            let count = (task.columns - first).min(4);
            let mut four = [S::splat(0.0); 4];
            // SAFETY: rows and runs have `k` numbers.
            unsafe {
                let a = task.a[0].add(i * task.lda);
                let runs: [*const f32; 4] = std::array::from_fn(|r| task.b.add((first + r.min(count - 1)) * ldb));
                let mut e = 0;
                while e + S::N <= k {
                    let x = S::load(a.add(e));
                    for r in 0..4 {
                        four[r] = x.mul_add(S::load(runs[r].add(e)), four[r]);
                    }
                    e += S::N;
                }
                for r in 0..count {
                    let mut rest = 0.0;
                    for e in e..k {
                        let (x, y) = (*a.add(e), *runs[r].add(e));
                        rest = if S::FUSED { x.mul_add(y, rest) } else { x * y + rest };
                    }
                    sums[first + r] = rest + four[r].reduce_add();
                }
            }
            j += 4;
        }
    }
}
