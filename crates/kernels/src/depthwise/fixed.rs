//! Blocks of output pixels for square kernels of 3 and 5 with steps of 1 and 2. A block is a few columns of one or two
//! rows; every input vector of it is loaded once, and what it contributes is added to every accumulator that it concerns.

use super::target::Target;
use crate::Isa;
use crate::simd::{Entry, Kernel, Number, Simd, entry, unroll};
use std::marker::PhantomData;

/// A block of output pixels, all channels.
pub(super) struct Block<T> {
    /// Input rows at the first input column of the block, which may lie before the row; null in the padding.
    pub(super) rows: [*const T; 7],
    /// Numbers from input column to input column.
    pub(super) step: usize,
    /// Whether columns are missing; which input columns of the block lie in the image.
    pub(super) edge: bool,
    pub(super) low: usize,
    pub(super) high: usize,
    pub(super) weights: *const f32,
    pub(super) channels: usize,
    pub(super) target: Target<T>,
}

/// Kernels of `K` by `K` with steps of `S`, over `R` rows and `X` columns of output.
struct Fixed<T, const K: usize, const S: usize, const R: usize, const X: usize>(PhantomData<T>);

impl<T: Number, const K: usize, const S: usize, const R: usize, const X: usize> Kernel for Fixed<T, K, S, R, X> {
    type Args<'a> = &'a Block<T>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(b: &Block<T>) {
        // Not compiled where `of` does not pick it.
        if const { !L::FUSED || (X > 4 && L::REGISTERS < 32) } {
            unreachable!("more sums than registers");
        }
        // SAFETY: the block describes memory that is there, and the processor has the instructions.
        unsafe {
            let (mut c, mut w) = (0, b.weights);
            if !b.edge {
                let all = L::first(L::N);
                while c + L::N <= b.channels {
                    block::<L, T, K, S, R, X, false>(b, c, w, all, L::N);
                    c += L::N;
                    w = w.add(K * K * L::N);
                }
            }
            while c < b.channels {
                let more = b.channels - c;
                block::<L, T, K, S, R, X, true>(b, c, w, L::first(more), more.min(L::N));
                c += L::N;
                w = w.add(K * K * L::N);
            }
        }
    }
}

/// The function for kernels of `k` by `k` with steps of `s`; `None` where there is none at this level.
pub(super) fn of<T: Number>(isa: Isa, k: usize, s: usize, rows: usize, wide: bool) -> Option<Entry<Block<T>>> {
    macro_rules! pick {
        ($(($k:literal $s:literal))*) => {
            match (isa.registers() >= 32, k, s, rows, wide) {
                $(
                    (true, $k, $s, 2, true) => Some(entry::<Fixed<T, $k, $s, 2, 7>, _>(isa)),
                    (true, $k, $s, 1, true) => Some(entry::<Fixed<T, $k, $s, 1, 7>, _>(isa)),
                    (_, $k, $s, 1, false) if !isa.is_plain() => Some(entry::<Fixed<T, $k, $s, 1, 4>, _>(isa)),
                )*
                _ => None,
            }
        };
    }
    pick!((3 1) (3 2) (5 1) (5 2))
}

/// With `CARE` columns may be missing, and vectors may have fewer lanes: the first `n`.
#[inline(always)]
unsafe fn block<
    L: Simd,
    T: Number,
    const K: usize,
    const S: usize,
    const R: usize,
    const X: usize,
    const CARE: bool,
>(
    b: &Block<T>,
    c: usize,
    w: *const f32,
    mask: L::Mask,
    n: usize,
) {
    // SAFETY: the caller describes memory that is there, and the processor has the instructions.
    unsafe {
        let mut acc = [[b.target.start::<L, CARE>(c, mask); X]; R];
        // Input rows for the first output row alone, for both, and for the second alone. Within each the code is the same.
        macro_rules! rows {
            ($rows:expr, $first:literal $second:literal) => {
                for r in const { $rows } {
                    if !b.rows[r].is_null() {
                        let from = b.rows[r].wrapping_add(c);
                        row::<L, T, K, S, R, X, $first, $second, CARE>(b, from, r, w, &mut acc, mask, n);
                    }
                }
            };
        }
        rows!(0..if R > 1 { S } else { K }, true false);
        if const { R > 1 } {
            rows!(S..K, true true);
            rows!(K..K + S, false true);
        }
        b.target.put::<L, CARE, R, X>(c, acc, mask, n);
    }
}

/// Adds input row `row` to the accumulators of its columns, of the `FIRST` output row and of the `SECOND`.
#[inline(always)]
unsafe fn row<
    L: Simd,
    T: Number,
    const K: usize,
    const S: usize,
    const R: usize,
    const X: usize,
    const FIRST: bool,
    const SECOND: bool,
    const CARE: bool,
>(
    b: &Block<T>,
    from: *const T,
    row: usize,
    w: *const f32,
    acc: &mut [[L; X]; R],
    mask: L::Mask,
    n: usize,
) {
    // SAFETY: the caller describes memory that is there, and the processor has the instructions.
    unsafe {
        let mut taps = [[L::splat(0.0); K]; R];
        macro_rules! taps {
            ($t:expr, $row:expr) => {
                let w = w.add($row * K * L::N);
                unroll!(k < K, [0 1 2 3 4] { taps[$t][k] = L::load(w.add(k * L::N)); });
            };
        }
        if const { FIRST } {
            taps!(0, row);
        }
        if const { SECOND } {
            taps!(R - 1, (row - S));
        }
        // The output columns that input column `j` concerns, each with the kernel column.
        macro_rules! column {
            ($j:literal: $($o:literal $k:literal),*) => {
                if const { $j < (X - 1) * S + K } && (const { !CARE } || ($j >= b.low && $j < b.high)) {
                    let at = from.wrapping_add($j * b.step);
                    let v = if const { CARE } { T::load_first::<L>(at, mask, n) } else { T::load::<L>(at) };
                    if const { FIRST } {
                        $(if const { $o < X } { acc[0][$o] = v.mul_add(taps[0][$k], acc[0][$o]); })*
                    }
                    if const { SECOND } {
                        $(if const { $o < X } { acc[R - 1][$o] = v.mul_add(taps[R - 1][$k], acc[R - 1][$o]); })*
                    }
                }
            };
        }
        if const { K == 3 && S == 1 } {
            column!(0: 0 0);
            column!(1: 1 0, 0 1);
            column!(2: 2 0, 1 1, 0 2);
            column!(3: 3 0, 2 1, 1 2);
            column!(4: 4 0, 3 1, 2 2);
            column!(5: 5 0, 4 1, 3 2);
            column!(6: 6 0, 5 1, 4 2);
            column!(7: 6 1, 5 2);
            column!(8: 6 2);
        }
        if const { K == 3 && S == 2 } {
            column!(0: 0 0);
            column!(1: 0 1);
            column!(2: 1 0, 0 2);
            column!(3: 1 1);
            column!(4: 2 0, 1 2);
            column!(5: 2 1);
            column!(6: 3 0, 2 2);
            column!(7: 3 1);
            column!(8: 4 0, 3 2);
            column!(9: 4 1);
            column!(10: 5 0, 4 2);
            column!(11: 5 1);
            column!(12: 6 0, 5 2);
            column!(13: 6 1);
            column!(14: 6 2);
        }
        if const { K == 5 && S == 1 } {
            column!(0: 0 0);
            column!(1: 1 0, 0 1);
            column!(2: 2 0, 1 1, 0 2);
            column!(3: 3 0, 2 1, 1 2, 0 3);
            column!(4: 4 0, 3 1, 2 2, 1 3, 0 4);
            column!(5: 5 0, 4 1, 3 2, 2 3, 1 4);
            column!(6: 6 0, 5 1, 4 2, 3 3, 2 4);
            column!(7: 6 1, 5 2, 4 3, 3 4);
            column!(8: 6 2, 5 3, 4 4);
            column!(9: 6 3, 5 4);
            column!(10: 6 4);
        }
        if const { K == 5 && S == 2 } {
            column!(0: 0 0);
            column!(1: 0 1);
            column!(2: 1 0, 0 2);
            column!(3: 1 1, 0 3);
            column!(4: 2 0, 1 2, 0 4);
            column!(5: 2 1, 1 3);
            column!(6: 3 0, 2 2, 1 4);
            column!(7: 3 1, 2 3);
            column!(8: 4 0, 3 2, 2 4);
            column!(9: 4 1, 3 3);
            column!(10: 5 0, 4 2, 3 4);
            column!(11: 5 1, 4 3);
            column!(12: 6 0, 5 2, 4 4);
            column!(13: 6 1, 5 3);
            column!(14: 6 2, 5 4);
            column!(15: 6 3);
            column!(16: 6 4);
        }
    }
}
