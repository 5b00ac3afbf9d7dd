//! One vector of floats, the same code for every level of instructions. A kernel is written once over [`Simd`] and reaches a
//! level through [`dispatch!`] or [`entry`], which need an [`Isa`](crate::Isa) that was detected.
//!
//! # A new level
//!
//! 1. A variant of [`Isa`](crate::Isa) with its token (`isa.rs`); the compiler then names each position that matches on levels.
//! 2. A vector type that implements [`Simd`] in a file of this folder, with the features at [`Simd::call`], and a line for it
//!    in `dispatch.rs`. No caller changes: they ask for `S::N` and `S::REGISTERS`.
//! 3. Where the level has more than vectors of floats, an implementation of what uses it: AMX, VNNI, AVX-512 bf16 and fp16 are
//!    tables of innermost functions (`gemm::Micro`) and conversions (`cast.rs`). `Isa::Amx` names the vector type of
//!    `Isa::Avx512` in `dispatch.rs`, so all but products of cells runs as there.
//!
//! # Raw intrinsics
//!
//! They stand in this folder, in the innermost functions of products (`gemm/f32_*.rs`, `gemm/pack.rs`,
//! `gemm/cells_*.rs`, `gemm/leave_avx512.rs`, `gemm/halves_avx512.rs`, `gemm/short_avx512.rs`, `gemm/compressed/rounded_avx512.rs`), in `cast.rs`,
//! where bytes are multiplied or made (`depthwise_bytes/avx512.rs`, `quantize.rs`), and where
//! elements are moved between lanes by patterns that have no portable name: transposed tiles of 1 to 8 bytes
//! (`movement/tiles.rs`), woven streams (`movement/weave.rs`), planes to pixels (`conv/fill.rs`). A test keeps it so.

mod brains;
mod dispatch;
mod number;
#[cfg(not(target_arch = "x86_64"))]
mod scalar;
mod unroll;

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::rounded_both;
pub(crate) use brains::{Brains, Cell, Float, Native, Shifted, Widened};
pub(crate) use dispatch::{Entry, Kernel, dispatch, entry, run};
pub(crate) use number::{Number, Readable};
pub(crate) use unroll::unroll;

use crate::cast::{Brain, Half, brain_to_f32, f32_to_brain, f32_to_half, half_to_f32};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `N` floats, with integers of the same width and one truth value a lane.
///
/// Only code that a level was dispatched to has such a type, so all but what takes addresses is safe. Methods are cheap names
/// for single instructions and must be inlined into [`Simd::call`]; outside of it they are calls, correct but slow.
pub(crate) trait Simd:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    type Int: Copy;
    type Mask: Copy;
    /// Floats of a vector.
    const N: usize;
    /// Vector registers of the machine, which bound the sums that a kernel keeps.
    const REGISTERS: usize;
    /// Whether [`Simd::lookup`] is one instruction.
    const FAST_LOOKUP: bool;
    /// Whether [`Simd::mul_add`] rounds once.
    const FUSED: bool;
    /// Whether some machines of the level have instructions of bf16.
    const BRAINS: bool = false;

    /// Runs a kernel in a function that is compiled for this level; `S::call::<K>` is what tables of functions hold.
    /// # Safety
    /// As the kernel says.
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out;

    fn splat(x: f32) -> Self;
    /// # Safety
    /// `N` floats can be read.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `N` floats can be written.
    unsafe fn store(self, to: *mut f32);
    /// The first `n` lanes, the others 0.
    /// # Safety
    /// `n <= N` floats can be read.
    unsafe fn load_partial(from: *const f32, n: usize) -> Self;
    /// # Safety
    /// `n <= N` floats can be written.
    unsafe fn store_partial(self, to: *mut f32, n: usize);
    /// The lanes of a mask that [`Simd::first`] made, the others 0.
    /// # Safety
    /// Those can be read.
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self;
    /// The lanes of a mask that [`Simd::first`] made.
    /// # Safety
    /// Those can be written.
    unsafe fn store_masked(self, to: *mut f32, mask: Self::Mask);
    /// Half as many floats, each of them twice.
    /// # Safety
    /// `N / 2` floats can be read.
    unsafe fn load_doubled(from: *const f32) -> Self;
    /// A float from each index, counted from `from`.
    /// # Safety
    /// Each of them can be read.
    unsafe fn gather(from: *const f32, indices: Self::Int) -> Self;

    /// `N` bytes with a sign.
    /// # Safety
    /// They can be read.
    unsafe fn load_i8(from: *const i8) -> Self::Int;
    /// The float of the table that the four lowest bits of each lane count; the other bits have no effect.
    fn lookup(table: &[f32; 16], indices: Self::Int) -> Self;

    /// `self * by + plus`, rounded once.
    fn fma(self, by: Self, plus: Self) -> Self;
    /// `from - self * by`, rounded once.
    fn fnma(self, by: Self, from: Self) -> Self;
    /// `self * by + plus`, rounded once where that is one instruction, else twice.
    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        self.fma(by, plus)
    }
    /// `self * by` less `other` in even lanes, plus `other` in odd ones; rounded as [`Simd::mul_add`].
    fn mul_add_alternate(self, by: Self, other: Self) -> Self;
    /// Lanes 0 and 1 change places, 2 and 3, and so on.
    fn swap_pairs(self) -> Self;
    /// `self > other ? self : other`; so `other` where one is NaN.
    fn max(self, other: Self) -> Self;
    /// `self < other ? self : other`; so `other` where one is NaN.
    fn min(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round_even(self) -> Self;
    /// `1 / self` to the last bit or two, for numbers that are neither tiny nor huge.
    fn recip(self) -> Self;
    /// `self * 2^n` for whole `n` of at most 300 in size; also right where the result is denormal.
    fn ldexp(self, n: Self) -> Self;

    fn lt(self, other: Self) -> Self::Mask;
    fn le(self, other: Self) -> Self::Mask;
    fn equal(self, other: Self) -> Self::Mask;
    fn mask_and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn any(mask: Self::Mask) -> bool;
    /// True for the first `n` lanes; all of them for `n` above `N`.
    fn first(n: usize) -> Self::Mask;
    /// Lanes of `yes` where the mask holds, else of `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    fn and_bits(self, bits: u32) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn to_bits(self) -> Self::Int;
    fn from_bits(bits: Self::Int) -> Self;
    /// The nearest whole number, for those that fit.
    fn to_int(self) -> Self::Int;
    fn from_int(int: Self::Int) -> Self;
    fn int(x: i32) -> Self::Int;
    fn int_add(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_sub(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_and(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_shl<const BY: u32>(a: Self::Int) -> Self::Int;
    /// Keeps the sign.
    fn int_shr<const BY: u32>(a: Self::Int) -> Self::Int;
    fn int_equal(a: Self::Int, b: Self::Int) -> Self::Mask;

    /// The sum of all lanes, halves upon halves.
    fn reduce_add(self) -> f32;
    /// The largest of all lanes; NaN where there is one or not, as it comes.
    fn reduce_max(self) -> f32;
    /// The sums of four vectors.
    fn reduce_add4(four: [Self; 4]) -> [f32; 4];
    /// Moves `block.rows` times `block.width` floats (each at most `N`) so that rows become columns.
    /// # Safety
    /// The block describes memory that is there.
    unsafe fn transpose(block: Block);

    /// The first `n` lanes, at most `N`, of numbers that lie as bf16; the others 0.
    /// # Safety
    /// `n` numbers can be read.
    #[inline(always)]
    unsafe fn load_brains(from: *const Brain, n: usize) -> Self {
        let mut floats = [0.0; 16];
        for i in 0..n.min(Self::N) {
            // SAFETY: the caller's promise.
            floats[i] = brain_to_f32(unsafe { *from.add(i) });
        }
        // SAFETY: no vector has more than 16 lanes.
        unsafe { Self::load(floats.as_ptr()) }
    }
    /// The first `n` lanes, at most `N`, rounded to bf16.
    /// # Safety
    /// `n` numbers can be written.
    #[inline(always)]
    unsafe fn store_brains(self, to: *mut Brain, n: usize) {
        let mut floats = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes; the rest is the caller's promise.
        unsafe {
            self.store(floats.as_mut_ptr());
            for i in 0..n.min(Self::N) {
                *to.add(i) = f32_to_brain(floats[i]);
            }
        }
    }
    /// All lanes, which are numbers of bf16 already.
    /// # Safety
    /// `N` numbers can be written.
    #[inline(always)]
    unsafe fn store_brains_exact(self, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { self.store_brains(to, Self::N) }
    }

    /// The first `n` lanes, at most `N`, of numbers that lie as f16; the others 0.
    /// # Safety
    /// `n` numbers can be read.
    #[inline(always)]
    unsafe fn load_halves(from: *const Half, n: usize) -> Self {
        let mut floats = [0.0; 16];
        for i in 0..n.min(Self::N) {
            // SAFETY: the caller's promise.
            floats[i] = half_to_f32(unsafe { *from.add(i) });
        }
        // SAFETY: no vector has more than 16 lanes.
        unsafe { Self::load(floats.as_ptr()) }
    }
    /// The first `n` lanes, at most `N`, rounded to f16.
    /// # Safety
    /// `n` numbers can be written.
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut Half, n: usize) {
        let mut floats = [0.0; 16];
        // SAFETY: no vector has more than 16 lanes; the rest is the caller's promise.
        unsafe {
            self.store(floats.as_mut_ptr());
            for i in 0..n.min(Self::N) {
                *to.add(i) = f32_to_half(floats[i]);
            }
        }
    }

    /// `sum` and the products of the two bf16 that each lane of both holds.
    #[inline(always)]
    fn dot_brains(self, by: Self, sum: Self) -> Self {
        let low = |v: Self| Self::from_bits(Self::int_shl::<16>(v.to_bits()));
        let high = |v: Self| v.and_bits(0xffff_0000);
        low(self).mul_add(low(by), high(self).mul_add(high(by), sum))
    }
    /// The same by an instruction, at levels that have one on some machines.
    /// # Safety
    /// The processor has the instructions of bf16, where the level has some.
    #[inline(always)]
    unsafe fn dot_brains_native(self, by: Self, sum: Self) -> Self {
        self.dot_brains(by, sum)
    }
    /// All lanes rounded to bf16.
    /// # Safety
    /// As [`Simd::dot_brains_native`], and `N` numbers can be written.
    #[inline(always)]
    unsafe fn store_brains_native(self, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { self.store_brains(to, Self::N) }
    }
    /// Two vectors rounded to bf16, lane by lane next to each other: the first in the lower half of each lane.
    /// # Safety
    /// As [`Simd::dot_brains_native`].
    #[inline(always)]
    unsafe fn pair_brains_native(self, other: Self) -> Self {
        self.pair_brains(other)
    }
    /// The same at every level.
    #[inline(always)]
    fn pair_brains(self, other: Self) -> Self {
        let rounded = |v: Self| {
            // To the nearest, ties to even; what is no number stays none.
            let odd = Self::int_and(Self::int_shr::<16>(v.to_bits()), Self::int(1));
            let bits = Self::int_add(Self::int_add(v.to_bits(), odd), Self::int(0x7fff));
            Self::select(v.equal(v), Self::from_bits(bits), Self::splat(f32::NAN))
        };
        rounded(self).weave_brains(rounded(other))
    }
    /// The upper halves of the lanes of both, the first ones below.
    #[inline(always)]
    fn weave_brains(self, other: Self) -> Self {
        let low = Self::from_bits(Self::int_shr::<16>(self.to_bits())).and_bits(0xffff);
        low.or(other.and_bits(0xffff_0000))
    }

    /// Vectors that lie one after the other.
    /// # Safety
    /// `C * N` floats can be read.
    #[inline(always)]
    unsafe fn load_many<const C: usize>(from: *const f32) -> [Self; C] {
        let mut many = [Self::splat(0.0); C];
        for i in 0..C {
            // SAFETY: the caller's promise.
            many[i] = unsafe { Self::load(from.add(i * Self::N)) };
        }
        many
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.and_bits(0x7fff_ffff)
    }
    /// The sign bit alone.
    #[inline(always)]
    fn sign_bit(self) -> Self {
        self.and_bits(0x8000_0000)
    }
    /// The polynomial with these coefficients, the highest power first.
    #[inline(always)]
    fn poly<const K: usize>(self, coefficients: [f32; K]) -> Self {
        let mut sum = Self::splat(coefficients[0]);
        for i in 1..K {
            sum = sum.fma(self, Self::splat(coefficients[i]));
        }
        sum
    }
}

/// A block to transpose, at most `N` by `N`.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) from: *const f32,
    /// Floats from row to row of the source.
    pub(crate) from_stride: usize,
    pub(crate) to: *mut f32,
    pub(crate) to_stride: usize,
    /// Rows of the source that are there; the columns of the result beyond repeat the last one, up to `N`.
    pub(crate) rows: usize,
    /// Columns of the source, which is as many rows as are written.
    pub(crate) width: usize,
    /// Floats written to each row of the result.
    pub(crate) to_width: usize,
}

macro_rules! operators {
    ($name:ident: $($op:ident $method:ident |$a:ident, $b:ident| $body:expr;)*) => {
        $(impl std::ops::$op for $name {
            type Output = $name;
            #[inline(always)]
            fn $method(self, other: $name) -> $name {
                let ($a, $b) = (self.0, other.0);
                $name($body)
            }
        })*
        impl std::ops::Neg for $name {
            type Output = $name;
            #[inline(always)]
            fn neg(self) -> $name {
                self.xor(<$name as Simd>::splat(-0.0))
            }
        }
    };
}
use operators;

/// Asks for a cache line, of any address.
#[inline(always)]
pub(crate) fn prefetch(from: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is a hint, for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it is a hint, for any address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) from, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = from;
}
