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

    /// Finishes and stores the columns of row `t`, where they exist; only the first `n` lanes, which the mask says too, where
    /// that is fewer. `at` are the positions in the output and in what is added.
    ///
    /// # Safety
    /// As [`Self::start`].
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd, const X: usize, const CARE: bool>(
        &self,
        t: usize,
        at: [usize; 2],
        sums: &mut [L; X],
        mask: L::Mask,
        n: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            self.slowly(sums);
            if self.add[t].is_null() {
                self.quick.apply_all(sums);
            } else {
                unroll!(o < X, 8, {
                    if !CARE || o < self.columns {
                        let at = self.add[t].add(o * self.add_step + at[1]);
                        let more = if CARE { L::load_masked(at, mask) } else { L::load(at) };
                        let v = sums[o];
                        sums[o] = if self.add_last { self.quick.apply(v) + more } else { self.quick.apply(v + more) };
                    }
                });
            }
            unroll!(o < X, 8, {
                if !CARE || o < self.columns {
                    let to = self.out[t].add(o * self.step + at[0]);
                    if CARE && n < L::N { T::store_first(sums[o], to, mask, n) } else { T::store(sums[o], to) }
                }
            });
        }
    }
}
