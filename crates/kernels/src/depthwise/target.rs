//! Where a block of output pixels goes and what is done to it on the way.

use crate::epilogue::Quick;
use crate::simd::{Number, Simd, unroll};
use crate::vmath::act::act_raw;
use crate::{Act, Isa};

/// One or two rows of output columns.
pub(super) struct Target<T> {
    pub(super) out: [*mut T; 2],
    /// Numbers from column to column.
    pub(super) step: usize,
    /// How many columns exist.
    pub(super) columns: usize,
    /// One number a channel, or null.
    pub(super) bias: *const f32,
    /// Added in registers, or null.
    pub(super) add: [*const f32; 2],
    pub(super) add_step: usize,
    pub(super) add_last: bool,
    pub(super) quick: Quick,
    /// A function that takes more than a few instructions, in place of the quick one.
    pub(super) slow: Option<(Isa, Act)>,
}

/// Lanes of the widest vectors.
const MOST_LANES: usize = 16;

/// Sums of a block while a slow function is done to them.
#[repr(align(64))]
struct Sums<const N: usize>([[f32; MOST_LANES]; N]);

impl<T: Number> Target<T> {
    /// What sums begin with at channel `c`; only the lanes of the mask with `CARE`.
    ///
    /// # Safety
    /// The addresses are valid for the lanes at `c`, and the processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn start<L: Simd, const CARE: bool>(&self, c: usize, mask: L::Mask) -> L {
        // SAFETY: the caller's promise.
        unsafe {
            if self.bias.is_null() {
                L::splat(0.0)
            } else if CARE {
                L::load_masked(self.bias.add(c), mask)
            } else {
                L::load(self.bias.add(c))
            }
        }
    }

    /// Does the slow function, where there is one, to all sums at once.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn slowly<L: Simd, const N: usize>(&self, sums: &mut [L; N]) {
        let Some((isa, act)) = self.slow else { return };
        let mut buffer = Sums([[0.0; MOST_LANES]; N]);
        let at = buffer.0.as_mut_ptr().cast::<f32>();
        // SAFETY: the buffer has room for as many vectors of the widest kind.
        unsafe {
            for (i, sum) in sums.iter().enumerate() {
                sum.store(at.add(i * L::N));
            }
            act_raw(isa, act, at, at, N * L::N);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = L::load(at.add(i * L::N));
            }
        }
    }

    /// Finishes and stores the sums of a block, those of row `t` in `sums[t]`: without `CARE` all of them, else the columns that
    /// exist, with the first `n` lanes, which the mask says too.
    ///
    /// # Safety
    /// As [`Self::start`].
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd, const CARE: bool, const R: usize, const X: usize>(
        &self,
        c: usize,
        mut sums: [[L; X]; R],
        mask: L::Mask,
        n: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            unroll!(t < R, [0 1] { self.slowly(&mut sums[t]); });
            if CARE {
                // Edges are few: a copy of their sums goes through memory, so that the code for a column is there once.
                let mut copy = [[L::splat(0.0); X]; R];
                unroll!(t < R, [0 1] { unroll!(o < X, 8, { copy[t][o] = sums[t][o]; }); });
                for (t, row) in copy.iter().enumerate() {
                    for (o, &sum) in row.iter().enumerate().take(self.columns) {
                        self.put_columns::<L, CARE, 1>(t, o, c, [sum], mask, n);
                    }
                }
            } else {
                unroll!(t < R, [0 1] { self.put_columns::<L, CARE, X>(t, 0, c, sums[t], mask, n); });
            }
        }
    }

    /// Finishes and stores columns of row `t`, from `o` on.
    ///
    /// # Safety
    /// As [`Self::start`]; the columns exist.
    #[inline(always)]
    unsafe fn put_columns<L: Simd, const CARE: bool, const X: usize>(
        &self,
        t: usize,
        o: usize,
        c: usize,
        mut v: [L; X],
        mask: L::Mask,
        n: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let is_added = !self.add[t].is_null();
            if is_added && !self.add_last {
                unroll!(i < X, 8, {
                    v[i] = v[i] + self.more::<L, CARE>(t, o + i, c, mask);
                });
            }
            self.quick.apply(&mut v);
            if is_added && self.add_last {
                unroll!(i < X, 8, {
                    v[i] = v[i] + self.more::<L, CARE>(t, o + i, c, mask);
                });
            }
            unroll!(i < X, 8, {
                let to = self.out[t].add((o + i) * self.step + c);
                if CARE && n < L::N { T::store_first(v[i], to, mask, n) } else { T::store(v[i], to) }
            });
        }
    }

    /// What is added to column `o` of row `t`.
    ///
    /// # Safety
    /// As [`Self::start`]; the column exists, and something is added.
    #[inline(always)]
    unsafe fn more<L: Simd, const CARE: bool>(&self, t: usize, o: usize, c: usize, mask: L::Mask) -> L {
        // SAFETY: the caller's promise.
        unsafe {
            let at = self.add[t].add(o * self.add_step + c);
            if CARE { L::load_masked(at, mask) } else { L::load(at) }
        }
    }
}
