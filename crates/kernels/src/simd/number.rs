//! Numbers as they lie in memory: kernels that compute with floats read and write other types through this.

use super::Simd;
use crate::cast::Brain;

/// A type that vectors of floats are loaded from and stored to.
pub(crate) trait Number: Copy + Send + Sync + 'static {
    /// # Safety
    /// `N` numbers can be read.
    unsafe fn load<L: Simd>(from: *const Self) -> L;
    /// The first `n` lanes, which `mask` says too; the others 0.
    /// # Safety
    /// Those can be read.
    unsafe fn load_first<L: Simd>(from: *const Self, mask: L::Mask, n: usize) -> L;
    /// # Safety
    /// `N` numbers can be written.
    unsafe fn store<L: Simd>(v: L, to: *mut Self);
    /// The first `n` lanes, which `mask` says too.
    /// # Safety
    /// Those can be written.
    unsafe fn store_first<L: Simd>(v: L, to: *mut Self, mask: L::Mask, n: usize);
}

impl Number for f32 {
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

impl Number for Brain {
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
    unsafe fn store<L: Simd>(v: L, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains(to, L::N) }
    }
    #[inline(always)]
    unsafe fn store_first<L: Simd>(v: L, to: *mut Brain, _: L::Mask, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains(to, n) }
    }
}
