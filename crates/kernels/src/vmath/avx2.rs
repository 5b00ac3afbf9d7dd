//! 8 floats in one AVX2 register. A truth value is a lane of ones.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: `level!` compiles callers for this level and checks the machine.

use super::simd::{Simd, operators};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct F8(pub(crate) __m256);

operators! { F8:
    Add add |a, b| unsafe { _mm256_add_ps(a, b) };
    Sub sub |a, b| unsafe { _mm256_sub_ps(a, b) };
    Mul mul |a, b| unsafe { _mm256_mul_ps(a, b) };
    Div div |a, b| unsafe { _mm256_div_ps(a, b) };
}

/// Eight ones, then eight zeros: a window into it selects the first lanes.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn first(n: usize) -> __m256i {
    debug_assert!(n <= 8);
    unsafe { _mm256_loadu_si256(LANES.as_ptr().add(8 - n).cast()) }
}

impl Simd for F8 {
    type Int = __m256i;
    type Mask = __m256;
    const N: usize = 8;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        F8(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F8(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        F8(unsafe { _mm256_maskload_ps(from, first(n)) })
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        unsafe { _mm256_maskstore_ps(to, first(n), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, places: Self::Int) -> Self {
        F8(unsafe { _mm256_i32gather_ps::<4>(from, places) })
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        F8(unsafe { _mm256_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        F8(unsafe { _mm256_fnmadd_ps(self.0, by.0, from.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F8(unsafe { _mm256_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F8(unsafe { _mm256_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F8(unsafe { _mm256_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        F8(unsafe { _mm256_floor_ps(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        F8(unsafe { _mm256_ceil_ps(self.0) })
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        F8(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        F8(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    // The guess of this level has 11 bits, so one step of Newton's is not enough; a division costs as much as two.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::splat(1.0) / self
    }
    #[inline(always)]
    fn times_power(self, n: Self) -> Self {
        let n = unsafe { _mm256_cvtps_epi32(n.0) };
        let half = unsafe { _mm256_srai_epi32::<1>(n) };
        let rest = unsafe { _mm256_sub_epi32(n, half) };
        let bias = Self::int(127);
        let power = |n| Self::from_bits(Self::int_shl::<23>(Self::int_add(n, bias)));
        // One part is exact whenever the other makes the result denormal, so it is rounded once.
        self * power(half) * power(rest)
    }
    #[inline(always)]
    fn lt(self, other: Self) -> __m256 {
        unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn le(self, other: Self) -> __m256 {
        unsafe { _mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn equal(self, other: Self) -> __m256 {
        unsafe { _mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn both(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_and_ps(a, b) }
    }
    #[inline(always)]
    fn either(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_or_ps(a, b) }
    }
    #[inline(always)]
    fn any(mask: __m256) -> bool {
        unsafe { _mm256_movemask_ps(mask) != 0 }
    }
    #[inline(always)]
    fn first(n: usize) -> __m256 {
        unsafe { _mm256_castsi256_ps(first(n)) }
    }
    #[inline(always)]
    fn select(mask: __m256, yes: Self, no: Self) -> Self {
        F8(unsafe { _mm256_blendv_ps(no.0, yes.0, mask) })
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F8(unsafe { _mm256_and_ps(self.0, _mm256_set1_ps(f32::from_bits(bits))) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        F8(unsafe { _mm256_or_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        F8(unsafe { _mm256_xor_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn to_bits(self) -> __m256i {
        unsafe { _mm256_castps_si256(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: __m256i) -> Self {
        F8(unsafe { _mm256_castsi256_ps(bits) })
    }
    #[inline(always)]
    fn to_int(self) -> __m256i {
        unsafe { _mm256_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: __m256i) -> Self {
        F8(unsafe { _mm256_cvtepi32_ps(int) })
    }
    #[inline(always)]
    fn int(x: i32) -> __m256i {
        unsafe { _mm256_set1_epi32(x) }
    }
    #[inline(always)]
    fn int_add(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    fn int_sub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn int_and(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: __m256i) -> __m256i {
        unsafe { _mm256_sll_epi32(a, _mm_cvtsi32_si128(BY as i32)) }
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: __m256i) -> __m256i {
        unsafe { _mm256_sra_epi32(a, _mm_cvtsi32_si128(BY as i32)) }
    }
    #[inline(always)]
    fn int_equal(a: __m256i, b: __m256i) -> __m256 {
        unsafe { _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)) }
    }
}
