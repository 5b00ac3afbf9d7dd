//! 16 floats in one AVX-512 register.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: `level!` compiles callers for this level and checks the machine.

use super::simd::{Simd, operators};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(crate) struct F16(pub(crate) __m512);

operators! { F16:
    Add add |a, b| unsafe { _mm512_add_ps(a, b) };
    Sub sub |a, b| unsafe { _mm512_sub_ps(a, b) };
    Mul mul |a, b| unsafe { _mm512_mul_ps(a, b) };
    Div div |a, b| unsafe { _mm512_div_ps(a, b) };
}

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

const EXACT: i32 = _MM_FROUND_NO_EXC;

impl Simd for F16 {
    type Int = __m512i;
    type Mask = __mmask16;
    const N: usize = 16;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        F16(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F16(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        F16(unsafe { _mm512_maskz_loadu_ps(first(n), from) })
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        unsafe { _mm512_mask_storeu_ps(to, first(n), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, places: Self::Int) -> Self {
        F16(unsafe { _mm512_i32gather_ps::<4>(places, from) })
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        F16(unsafe { _mm512_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        F16(unsafe { _mm512_fnmadd_ps(self.0, by.0, from.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F16(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F16(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F16(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        F16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        F16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        F16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_ZERO | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        F16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn recip(self) -> Self {
        let guess = F16(unsafe { _mm512_rcp14_ps(self.0) });
        let miss = guess.fnma(self, Self::splat(1.0));
        guess.fma(miss, guess)
    }
    #[inline(always)]
    fn times_power(self, n: Self) -> Self {
        F16(unsafe { _mm512_scalef_ps(self.0, n.0) })
    }
    #[inline(always)]
    fn lt(self, other: Self) -> __mmask16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn le(self, other: Self) -> __mmask16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn equal(self, other: Self) -> __mmask16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn both(a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn either(a: __mmask16, b: __mmask16) -> __mmask16 {
        a | b
    }
    #[inline(always)]
    fn any(mask: __mmask16) -> bool {
        mask != 0
    }
    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        first(n)
    }
    #[inline(always)]
    fn select(mask: __mmask16, yes: Self, no: Self) -> Self {
        F16(unsafe { _mm512_mask_blend_ps(mask, no.0, yes.0) })
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F16(unsafe { _mm512_and_ps(self.0, _mm512_set1_ps(f32::from_bits(bits))) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        F16(unsafe { _mm512_or_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        F16(unsafe { _mm512_xor_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn to_bits(self) -> __m512i {
        unsafe { _mm512_castps_si512(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: __m512i) -> Self {
        F16(unsafe { _mm512_castsi512_ps(bits) })
    }
    #[inline(always)]
    fn to_int(self) -> __m512i {
        unsafe { _mm512_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: __m512i) -> Self {
        F16(unsafe { _mm512_cvtepi32_ps(int) })
    }
    #[inline(always)]
    fn int(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    fn int_add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    fn int_sub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn int_and(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: __m512i) -> __m512i {
        unsafe { _mm512_slli_epi32::<BY>(a) }
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: __m512i) -> __m512i {
        unsafe { _mm512_srai_epi32::<BY>(a) }
    }
    #[inline(always)]
    fn int_equal(a: __m512i, b: __m512i) -> __mmask16 {
        unsafe { _mm512_cmpeq_epi32_mask(a, b) }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
}
