//! Numbers as they lie in memory: kernels that compute with floats read and write other types through this.

use super::Simd;
use crate::cast::{Brain, Half, brain_to_f32, half_to_f32};

/// Lanes of the widest vectors.
const MOST_LANES: usize = 16;

/// A type that vectors of floats are loaded from.
pub(crate) trait Readable: Copy + Send + Sync + 'static {
    /// # Safety
    /// `N` numbers can be read.
    unsafe fn load<L: Simd>(from: *const Self) -> L;
    /// The first `n` lanes, which `mask` says too; the others 0.
    /// # Safety
    /// Those can be read.
    unsafe fn load_first<L: Simd>(from: *const Self, mask: L::Mask, n: usize) -> L;
    /// The number itself.
    fn wide(self) -> f32;
}

/// A type that they are stored to as well.
pub(crate) trait Number: Readable {
    /// The least number that is finite.
    const LOWEST: f32;
    /// # Safety
    /// `N` numbers can be written.
    unsafe fn store<L: Simd>(v: L, to: *mut Self);
    /// Numbers that the type has without rounding.
    /// # Safety
    /// `N` numbers can be written.
    #[inline(always)]
    unsafe fn store_exact<L: Simd>(v: L, to: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::store(v, to) }
    }
    /// The first `n` lanes, which `mask` says too.
    /// # Safety
    /// Those can be written.
    unsafe fn store_first<L: Simd>(v: L, to: *mut Self, mask: L::Mask, n: usize);
}

impl Readable for f32 {
    #[inline(always)]
    unsafe fn load<L: Simd>(from: *const f32) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load(from) }
    }
    #[inline(always)]
    unsafe fn load_first<L: Simd>(from: *const f32, mask: L::Mask, _: usize) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_masked(from, mask) }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }
}

impl Number for f32 {
    const LOWEST: f32 = f32::MIN;
    #[inline(always)]
    unsafe fn store<L: Simd>(v: L, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { v.store(to) }
    }
    #[inline(always)]
    unsafe fn store_first<L: Simd>(v: L, to: *mut f32, mask: L::Mask, _: usize) {
        // SAFETY: the caller's promise.
        unsafe { v.store_masked(to, mask) }
    }
}

impl Readable for Brain {
    #[inline(always)]
    unsafe fn load<L: Simd>(from: *const Brain) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_brains(from, L::N) }
    }
    #[inline(always)]
    unsafe fn load_first<L: Simd>(from: *const Brain, _: L::Mask, n: usize) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_brains(from, n) }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        brain_to_f32(self)
    }
}

impl Number for Brain {
    const LOWEST: f32 = f32::from_bits(0xff7f_0000);
    #[inline(always)]
    unsafe fn store<L: Simd>(v: L, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains(to, L::N) }
    }
    #[inline(always)]
    unsafe fn store_exact<L: Simd>(v: L, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains_exact(to) }
    }
    #[inline(always)]
    unsafe fn store_first<L: Simd>(v: L, to: *mut Brain, _: L::Mask, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains(to, n) }
    }
}

impl Readable for Half {
    #[inline(always)]
    unsafe fn load<L: Simd>(from: *const Half) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_halves(from, L::N) }
    }
    #[inline(always)]
    unsafe fn load_first<L: Simd>(from: *const Half, _: L::Mask, n: usize) -> L {
        // SAFETY: the caller's promise.
        unsafe { L::load_halves(from, n) }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        half_to_f32(self)
    }
}

impl Number for Half {
    const LOWEST: f32 = -65504.0;
    #[inline(always)]
    unsafe fn store<L: Simd>(v: L, to: *mut Half) {
        // SAFETY: the caller's promise.
        unsafe { v.store_halves(to, L::N) }
    }
    #[inline(always)]
    unsafe fn store_first<L: Simd>(v: L, to: *mut Half, _: L::Mask, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { v.store_halves(to, n) }
    }
}

/// Steps of a grid, as they are.
impl Readable for u8 {
    #[inline(always)]
    unsafe fn load<L: Simd>(from: *const u8) -> L {
        // SAFETY: the caller's promise.
        L::from_int(L::int_and(unsafe { L::load_i8(from.cast()) }, L::int(255)))
    }
    #[inline(always)]
    unsafe fn load_first<L: Simd>(from: *const u8, _: L::Mask, n: usize) -> L {
        let mut whole = [0u8; MOST_LANES];
        // SAFETY: the caller promises `n` bytes, and the array has room for all lanes.
        unsafe {
            std::ptr::copy_nonoverlapping(from, whole.as_mut_ptr(), n);
            u8::load(whole.as_ptr())
        }
    }
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from(self)
    }
}
