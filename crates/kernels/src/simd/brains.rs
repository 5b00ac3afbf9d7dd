//! Cells of four bytes in the lanes of vectors: one float, which may have been an f16, or two bf16. Pairs are multiplied by instructions of the processor, or
//! by those of floats at any level; a kernel that is generic over [`Cell`] is compiled for all, and the plain way tests the other.

use super::{Number, Simd};
use crate::cast::{Brain, Half};

/// What a cell holds.
pub(crate) trait Cell: Copy + Send + Sync + 'static {
    /// As they lie in memory.
    type Number: Number;
    /// Numbers of a cell.
    const COUNT: usize;
    /// Whether numbers are widened when they are copied into cells.
    const WIDENED: bool = false;
    /// Whether there is code for vectors that have no instructions of bf16. What is not compiled must not be called.
    const EVERYWHERE: bool = true;
    /// `sum` and the products of the numbers of each lane.
    ///
    /// # Safety
    /// The processor has the instructions that the implementor stands for.
    unsafe fn multiply<S: Simd>(a: S, b: S, sum: S) -> S;
    /// Lanes of both next to each other, in cells of pairs.
    ///
    /// # Safety
    /// As for [`Cell::multiply`].
    unsafe fn pair<S: Simd>(first: S, second: S) -> S;
}

/// One float.
#[derive(Clone, Copy)]
pub(crate) struct Float;

impl Cell for Float {
    type Number = f32;
    const COUNT: usize = 1;
    #[inline(always)]
    unsafe fn multiply<S: Simd>(a: S, b: S, sum: S) -> S {
        a.mul_add(b, sum)
    }
    #[inline(always)]
    unsafe fn pair<S: Simd>(_: S, _: S) -> S {
        unreachable!("a cell of floats has room for one")
    }
}

/// One f16, which is a float in its cell.
#[derive(Clone, Copy)]
pub(crate) struct Widened;

impl Cell for Widened {
    type Number = Half;
    const COUNT: usize = 1;
    const WIDENED: bool = true;
    #[inline(always)]
    unsafe fn multiply<S: Simd>(a: S, b: S, sum: S) -> S {
        a.mul_add(b, sum)
    }
    #[inline(always)]
    unsafe fn pair<S: Simd>(_: S, _: S) -> S {
        unreachable!("a cell of floats has room for one")
    }
}

impl<B: Brains> Cell for B {
    type Number = Brain;
    const COUNT: usize = 2;
    const EVERYWHERE: bool = B::ANY_LEVEL;
    #[inline(always)]
    unsafe fn multiply<S: Simd>(a: S, b: S, sum: S) -> S {
        // SAFETY: the caller's promise.
        unsafe { B::dot(a, b, sum) }
    }
    #[inline(always)]
    unsafe fn pair<S: Simd>(first: S, second: S) -> S {
        // SAFETY: the caller's promise.
        unsafe { B::pair(first, second) }
    }
}

/// Arithmetic of bf16.
pub(crate) trait Brains: Copy + Send + Sync + 'static {
    /// Whether vectors of every level do it.
    const ANY_LEVEL: bool;
    /// `sum` and the products of both pairs of each lane.
    ///
    /// # Safety
    /// The processor has the instructions that the implementor stands for; so for all of them.
    unsafe fn dot<S: Simd>(a: S, b: S, sum: S) -> S;
    /// # Safety
    /// `N` numbers can be written.
    unsafe fn store<S: Simd>(v: S, to: *mut Brain);
    /// Lanes of both next to each other, those of the first in the lower half.
    ///
    /// # Safety
    /// As for [`Brains::dot`].
    unsafe fn pair<S: Simd>(first: S, second: S) -> S;
}

/// By the instructions of bf16; only where [`crate::Numbers::is_native`] says so.
#[derive(Clone, Copy)]
pub(crate) struct Native;

/// By shifts and products of floats.
#[derive(Clone, Copy)]
pub(crate) struct Shifted;

impl Brains for Native {
    const ANY_LEVEL: bool = false;
    #[inline(always)]
    unsafe fn dot<S: Simd>(a: S, b: S, sum: S) -> S {
        // SAFETY: the caller's promise.
        unsafe { a.dot_brains_native(b, sum) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(v: S, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains_native(to) }
    }
    #[inline(always)]
    unsafe fn pair<S: Simd>(first: S, second: S) -> S {
        // SAFETY: the caller's promise.
        unsafe { first.pair_brains_native(second) }
    }
}

impl Brains for Shifted {
    const ANY_LEVEL: bool = true;
    #[inline(always)]
    unsafe fn dot<S: Simd>(a: S, b: S, sum: S) -> S {
        a.dot_brains(b, sum)
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(v: S, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { v.store_brains(to, S::N) }
    }
    #[inline(always)]
    unsafe fn pair<S: Simd>(first: S, second: S) -> S {
        first.pair_brains(second)
    }
}
