//! Products of few rows with a matrix that lies transposed: each number of the result is a dot product of two runs. Nothing
//! is packed, because everything is read once.

use super::task::Task;
use super::{Micro, SKINNY};
use crate::Isa;

/// Columns whose sums are finished together.
pub(crate) const COLUMNS: usize = 32;

/// Up to [`SKINNY`] rows of the task's `a` times `columns` runs at `b`, `ldb` apart; all as the task says otherwise.
///
/// # Safety
/// The task's rows have `depth` numbers, each of `columns` runs as many, and `c`, `bias` and `add` hold the result.
pub(crate) unsafe fn dots(isa: Isa, micro: &Micro, task: &Task, rows: usize, ldb: usize) {
    let mut sums = [[0.0f32; COLUMNS]; SKINNY];
    // SAFETY: the caller's promise is passed on; the level is one of this machine.
    unsafe {
        match isa.here() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(task, rows, ldb, &mut sums),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(task, rows, ldb, &mut sums),
            _ => all::<4, false>(task, rows, ldb, &mut sums),
        }
        (micro.store)(task, sums.as_ptr().cast(), rows);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn avx512(task: &Task, rows: usize, ldb: usize, sums: &mut [[f32; COLUMNS]; SKINNY]) {
    // SAFETY: the caller's promise.
    unsafe { all::<16, true>(task, rows, ldb, sums) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(task: &Task, rows: usize, ldb: usize, sums: &mut [[f32; COLUMNS]; SKINNY]) {
    // SAFETY: the caller's promise.
    unsafe { all::<8, true>(task, rows, ldb, sums) }
}

/// Every row with every run, four runs at a time, in vectors of `L`.
#[inline(always)]
unsafe fn all<const L: usize, const FMA: bool>(
    task: &Task,
    rows: usize,
    ldb: usize,
    sums: &mut [[f32; COLUMNS]; SKINNY],
) {
    let k = task.depth;
    for (i, sums) in sums.iter_mut().enumerate().take(rows) {
        let mut j = 0;
        while j < task.columns {
            // The last runs are done again rather than fewer at once.
            let first = if task.columns < 4 { j } else { j.min(task.columns - 4) };
            let count = (task.columns - first).min(4);
            let mut four = [[0.0f32; L]; 4];
            // SAFETY: rows and runs have `k` numbers.
            unsafe {
                let a = task.a[0].add(i * task.lda);
                let runs: [*const f32; 4] = std::array::from_fn(|r| task.b.add((first + r.min(count - 1)) * ldb));
                let mut e = 0;
                while e + L <= k {
                    let x = *a.add(e).cast::<[f32; L]>();
                    for r in 0..4 {
                        let y = *runs[r].add(e).cast::<[f32; L]>();
                        for l in 0..L {
                            four[r][l] = multiply_add::<FMA>(x[l], y[l], four[r][l]);
                        }
                    }
                    e += L;
                }
                for r in 0..count {
                    let mut rest = 0.0;
                    for e in e..k {
                        rest = multiply_add::<FMA>(*a.add(e), *runs[r].add(e), rest);
                    }
                    sums[first + r] = rest + total(four[r]);
                }
            }
            j += 4;
        }
    }
}

#[inline(always)]
fn multiply_add<const FMA: bool>(x: f32, y: f32, sum: f32) -> f32 {
    if FMA { x.mul_add(y, sum) } else { x * y + sum }
}

/// The sum of a vector, halves upon halves.
#[inline(always)]
fn total<const L: usize>(mut v: [f32; L]) -> f32 {
    let mut half = L / 2;
    while half > 0 {
        for l in 0..half {
            v[l] += v[l + half];
        }
        half /= 2;
    }
    v[0]
}
