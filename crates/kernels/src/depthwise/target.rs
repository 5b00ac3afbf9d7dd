//! Where a block of output pixels goes and what is done to it on the way.

use crate::epilogue::Quick;
use crate::simd::{Number, Simd};

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
}

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

    /// Finishes and stores column `o` of row `t`; only the first `n` lanes, which the mask says too, where that is fewer.
    ///
    /// # Safety
    /// As [`Self::start`]; the column exists.
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd, const CARE: bool>(
        &self,
        t: usize,
        o: usize,
        c: usize,
        v: L,
        mask: L::Mask,
        n: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut v = v;
            if self.add[t].is_null() {
                v = self.quick.apply(v);
            } else {
                let at = self.add[t].add(o * self.add_step + c);
                let more = if CARE { L::load_masked(at, mask) } else { L::load(at) };
                v = if self.add_last { self.quick.apply(v) + more } else { self.quick.apply(v + more) };
            }
            let to = self.out[t].add(o * self.step + c);
            if CARE && n < L::N { T::store_first(v, to, mask, n) } else { T::store(v, to) }
        }
    }
}
