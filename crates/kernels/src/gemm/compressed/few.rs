//! Up to four rows times a panel. A group's codes are summed as they are; its zero point takes away as many times the sum of
//! the row's numbers, which all panels share, and its scale comes last.

use super::Form;
use super::unpack::{BYTES, INTEGERS, TABLE, factors, pair, way};
use crate::Isa;
use crate::simd::{Kernel, Simd, dispatch, prefetch, run};

/// Bytes ahead of which codes are asked for.
const AHEAD: usize = 2048;

/// The sums of all groups of each row.
///
/// # Safety
/// `a` holds `m` rows of `k` floats, `lda` apart.
pub(super) unsafe fn group_sums(
    isa: Isa,
    form: &Form,
    m: usize,
    a: *const f32,
    lda: usize,
    to: &mut [f32],
) -> *const f32 {
    let (group, groups) = (form.compression.group, form.groups());
    let to = &mut to[..m * groups];
    for (i, to) in to.chunks_mut(groups.max(1)).enumerate() {
        for (g, to) in to.iter_mut().enumerate() {
            // SAFETY: the group lies in the row; the level was detected.
            unsafe {
                let from = a.add(i * lda + g * group);
                *to = dispatch!(isa, <S>(from: *const f32, group: usize) -> f32 { sum::<S>(from, group) });
            }
        }
    }
    to.as_ptr()
}

#[inline(always)]
unsafe fn sum<S: Simd>(from: *const f32, len: usize) -> f32 {
    let mut sum = S::splat(0.0);
    for at in (0..len).step_by(S::N) {
        // SAFETY: the caller promises `len` floats.
        sum = sum + unsafe { S::load_partial(from.add(at), (len - at).min(S::N)) };
    }
    sum.reduce_add()
}

struct Job<'a> {
    form: &'a Form,
    table: [f32; 16],
    a: *const f32,
    lda: usize,
    packed: *const u8,
    group_sums: *const f32,
    sums: *mut f32,
}

/// Adds `m` rows times a panel to rows of 32 sums.
///
/// # Safety
/// `a` holds `m` rows of `k` floats, `packed` is a panel of the form, and `group_sums` are those of the rows where the form
/// has zero points.
pub(super) unsafe fn panel(
    isa: Isa,
    form: &Form,
    m: usize,
    (a, lda): (*const f32, usize),
    packed: *const u8,
    group_sums: *const f32,
    sums: &mut [f32; 128],
) {
    let (way, table) = way(form);
    let job = Job { form, table, a, lda, packed, group_sums, sums: sums.as_mut_ptr() };
    // SAFETY: the caller's promise; four rows of sums are there.
    unsafe {
        macro_rules! rows {
            ($WAY:ident) => {
                match m {
                    1 => run::<Few<1, 4, $WAY>>(isa, &job),
                    2 => run::<Few<2, 2, $WAY>>(isa, &job),
                    3 => run::<Few<3, 1, $WAY>>(isa, &job),
                    _ => run::<Few<4, 1, $WAY>>(isa, &job),
                }
            };
        }
        match way {
            BYTES => rows!(BYTES),
            INTEGERS => rows!(INTEGERS),
            _ => rows!(TABLE),
        }
    }
}

// Bytes of a pair of vectors.
const fn bytes<S: Simd>(way: usize) -> usize {
    if way == BYTES { 2 * S::N } else { S::N }
}

/// `M` rows; `U` sets of sums, so that the additions do not wait for one another.
struct Few<const M: usize, const U: usize, const WAY: usize>;

impl<const M: usize, const U: usize, const WAY: usize> Kernel for Few<M, U, WAY> {
    type Args<'a> = &'a Job<'a>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(job: &Job<'_>) {
        let (form, lda) = (job.form, job.lda);
        let (group, row) = (form.compression.group, form.row());
        for first in (0..form.width).step_by(2 * S::N) {
            for g in 0..form.groups() {
                // SAFETY: rows and the panel are as long as the caller promises.
                unsafe {
                    let head = job.packed.add(g * form.group_bytes());
                    let mut codes = head.add(form.head() + first * form.compression.codes.bits() / 8);
                    let mut x = job.a.add(g * group);
                    let mut sums = [[[S::splat(0.0); 2]; M]; U];
                    let mut left = group;
                    while left >= U {
                        for line in 0..const { (U * bytes::<S>(WAY)).div_ceil(64) } {
                            prefetch(codes.wrapping_add(AHEAD + 64 * line).cast());
                        }
                        for u in 0..U {
                            let b = pair::<S, WAY>(codes, &job.table);
                            for i in 0..M {
                                let x = S::splat(*x.add(i * lda + u));
                                sums[u][i][0] = b[0].mul_add(x, sums[u][i][0]);
                                sums[u][i][1] = b[1].mul_add(x, sums[u][i][1]);
                            }
                            codes = codes.wrapping_add(row);
                        }
                        x = x.add(U);
                        left -= U;
                    }
                    while left > 0 {
                        let b = pair::<S, WAY>(codes, &job.table);
                        for i in 0..M {
                            let x = S::splat(*x.add(i * lda));
                            sums[0][i][0] = b[0].mul_add(x, sums[0][i][0]);
                            sums[0][i][1] = b[1].mul_add(x, sums[0][i][1]);
                        }
                        codes = codes.wrapping_add(row);
                        x = x.add(1);
                        left -= 1;
                    }
                    let [scale, zero] = factors::<S>(form, head, first);
                    for i in 0..M {
                        for v in 0..2 {
                            let mut sum = sums[0][i][v];
                            for u in 1..U {
                                sum = sum + sums[u][i][v];
                            }
                            if form.compression.zeros {
                                let of_row = S::splat(*job.group_sums.add(i * form.groups() + g));
                                sum = sum - zero[v] * of_row;
                            }
                            let to = job.sums.add(i * 32 + first + v * S::N);
                            scale[v].mul_add(sum, S::load(to)).store(to);
                        }
                    }
                }
            }
        }
    }
}
