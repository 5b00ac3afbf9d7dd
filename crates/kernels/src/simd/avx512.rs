//! 16 floats in one AVX-512 register.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: only code that was dispatched to this level has the type.

use super::avx2::sums_of_halves;
use super::{Block, Kernel, Simd, operators};
use crate::cast::{Brain, Half};
use std::arch::asm;
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct F32x16(__m512);

operators! { F32x16:
    Add add |a, b| unsafe { _mm512_add_ps(a, b) };
    Sub sub |a, b| unsafe { _mm512_sub_ps(a, b) };
    Mul mul |a, b| unsafe { _mm512_mul_ps(a, b) };
    Div div |a, b| unsafe { _mm512_div_ps(a, b) };
}

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= 16 { 0xffff } else { ((1u32 << n) - 1) as __mmask16 }
}

const EXACT: i32 = _MM_FROUND_NO_EXC;

// The three instructions of bf16. The level has them on some machines only, so the compiler must not know them: a function that
// named the feature would not be inlined into code of this level.
#[target_feature(enable = "avx512f")]
#[inline]
fn dot(a: __m512, b: __m512, mut sum: __m512) -> __m512 {
    unsafe {
        asm!("vdpbf16ps {0}, {1}, {2}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

#[target_feature(enable = "avx512f")]
#[inline]
fn rounded(x: __m512) -> __m256i {
    let half;
    unsafe {
        asm!("vcvtneps2bf16 {0:y}, {1}", out(ymm_reg) half, in(zmm_reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    half
}

/// Two vectors rounded to bf16, the first in the lower half; only where there are instructions of bf16.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn rounded_both(low: __m512, high: __m512) -> __m512i {
    let both;
    unsafe {
        asm!("vcvtne2ps2bf16 {0}, {1}, {2}", out(zmm_reg) both, in(zmm_reg) high, in(zmm_reg) low,
            options(pure, nomem, nostack, preserves_flags));
    }
    both
}

/// Where the halves of lanes are in two vectors one after the other.
#[repr(align(64))]
struct Order([u16; 32]);
static WOVEN: Order = {
    let mut order = [0; 32];
    let mut i = 0;
    while i < 32 {
        order[i] = (i / 2 + i % 2 * 16) as u16;
        i += 1;
    }
    Order(order)
};

impl Simd for F32x16 {
    type Int = __m512i;
    type Mask = __mmask16;
    const N: usize = 16;
    const REGISTERS: usize = 32;
    const FAST_LOOKUP: bool = true;
    const FUSED: bool = true;
    const BRAINS: bool = true;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out {
        unsafe { K::run::<Self>(args) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        F32x16(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F32x16(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f32, n: usize) -> Self {
        F32x16(unsafe { _mm512_maskz_loadu_ps(first(n), from) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, n: usize) {
        unsafe { _mm512_mask_storeu_ps(to, first(n), self.0) }
    }
    #[inline(always)]
    unsafe fn load_brains(from: *const Brain, n: usize) -> Self {
        let bits = unsafe { _mm256_maskz_loadu_epi16(first(n), from.cast()) };
        F32x16(unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits))) })
    }
    #[inline(always)]
    unsafe fn store_brains(self, to: *mut Brain, n: usize) {
        unsafe {
            // One bit in memory to look at, in place of ten instructions.
            if is_x86_feature_detected!("avx512bf16") {
                return match n {
                    16 => _mm256_storeu_si256(to.cast(), rounded(self.0)),
                    _ => _mm256_mask_storeu_epi16(to.cast(), first(n), rounded(self.0)),
                };
            }
            // To the nearest, ties to even; what is no number stays none.
            let bits = _mm512_castps_si512(self.0);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let round = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
            let none = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0);
            let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
            let half = _mm512_srli_epi32::<16>(_mm512_mask_mov_epi32(round, none, quiet));
            _mm256_mask_storeu_epi16(to.cast(), first(n), _mm512_cvtepi32_epi16(half));
        }
    }
    #[inline(always)]
    unsafe fn store_brains_exact(self, to: *mut Brain) {
        unsafe {
            let upper = _mm512_srli_epi32::<16>(_mm512_castps_si512(self.0));
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(upper));
        }
    }
    #[inline(always)]
    unsafe fn load_halves(from: *const Half, n: usize) -> Self {
        F32x16(unsafe { _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), from.cast())) })
    }
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut Half, n: usize) {
        unsafe {
            let bits = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm256_mask_storeu_epi16(to.cast(), first(n), bits);
        }
    }
    #[inline(always)]
    unsafe fn dot_brains_native(self, by: Self, sum: Self) -> Self {
        F32x16(unsafe { dot(self.0, by.0, sum.0) })
    }
    #[inline(always)]
    unsafe fn store_brains_native(self, to: *mut Brain) {
        unsafe { _mm256_storeu_si256(to.cast(), rounded(self.0)) }
    }
    #[inline(always)]
    unsafe fn pair_brains_native(self, other: Self) -> Self {
        unsafe {
            let order = _mm512_load_si512(WOVEN.0.as_ptr().cast());
            F32x16(_mm512_castsi512_ps(_mm512_permutexvar_epi16(order, rounded_both(self.0, other.0))))
        }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, indices: Self::Int) -> Self {
        F32x16(unsafe { _mm512_i32gather_ps::<4>(indices, from) })
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> __m512i {
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    fn lookup(table: &[f32; 16], indices: __m512i) -> Self {
        F32x16(unsafe { _mm512_permutexvar_ps(indices, _mm512_loadu_ps(table.as_ptr())) })
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        F32x16(unsafe { _mm512_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        F32x16(unsafe { _mm512_fnmadd_ps(self.0, by.0, from.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F32x16(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F32x16(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F32x16(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        F32x16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        F32x16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        F32x16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_ZERO | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        F32x16(unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | EXACT }>(self.0) })
    }
    #[inline(always)]
    fn recip(self) -> Self {
        let guess = F32x16(unsafe { _mm512_rcp14_ps(self.0) });
        let miss = guess.fnma(self, Self::splat(1.0));
        guess.fma(miss, guess)
    }
    #[inline(always)]
    fn ldexp(self, n: Self) -> Self {
        F32x16(unsafe { _mm512_scalef_ps(self.0, n.0) })
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
    fn mask_and(a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
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
        F32x16(unsafe { _mm512_mask_blend_ps(mask, no.0, yes.0) })
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F32x16(unsafe { _mm512_and_ps(self.0, _mm512_set1_ps(f32::from_bits(bits))) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        F32x16(unsafe { _mm512_or_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        F32x16(unsafe { _mm512_xor_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn to_bits(self) -> __m512i {
        unsafe { _mm512_castps_si512(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: __m512i) -> Self {
        F32x16(unsafe { _mm512_castsi512_ps(bits) })
    }
    #[inline(always)]
    fn to_int(self) -> __m512i {
        unsafe { _mm512_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: __m512i) -> Self {
        F32x16(unsafe { _mm512_cvtepi32_ps(int) })
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
    fn reduce_add(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
    #[inline(always)]
    fn reduce_max(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __mmask16) -> Self {
        F32x16(unsafe { _mm512_maskz_loadu_ps(mask, from) })
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __mmask16) {
        unsafe { _mm512_mask_storeu_ps(to, mask, self.0) }
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        unsafe {
            let order = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
            F32x16(_mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(from))))
        }
    }
    #[inline(always)]
    fn mul_add_alternate(self, by: Self, other: Self) -> Self {
        F32x16(unsafe { _mm512_fmaddsub_ps(self.0, by.0, other.0) })
    }
    #[inline(always)]
    fn swap_pairs(self) -> Self {
        F32x16(unsafe { _mm512_permute_ps::<0b10_11_00_01>(self.0) })
    }
    #[inline(always)]
    fn reduce_add4([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        sums_of_halves([halved(a), halved(b), halved(c), halved(d)])
    }
    #[inline(always)]
    unsafe fn transpose(b: Block) {
        // SAFETY: rows are clamped to those that are there, masks keep loads and stores inside of the block.
        unsafe {
            let mask = first(b.width);
            macro_rules! row {
                ($i:expr) => {
                    _mm512_maskz_loadu_ps(mask, b.from.add(($i).min(b.rows - 1) * b.from_stride))
                };
            }
            let mut t = [_mm512_setzero_ps(); 16];
            for i in 0..8 {
                let (x, y) = (row!(2 * i), row!(2 * i + 1));
                t[2 * i] = _mm512_unpacklo_ps(x, y);
                t[2 * i + 1] = _mm512_unpackhi_ps(x, y);
            }
            let mut u = [_mm512_setzero_ps(); 16];
            for i in 0..4 {
                let (w, x) = (_mm512_castps_pd(t[4 * i]), _mm512_castps_pd(t[4 * i + 1]));
                let (y, z) = (_mm512_castps_pd(t[4 * i + 2]), _mm512_castps_pd(t[4 * i + 3]));
                u[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(w, y));
                u[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(w, y));
                u[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, z));
                u[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, z));
            }
            let out = first(b.to_width);
            for i in 0..4 {
                let low = _mm512_shuffle_f32x4::<0x88>(u[i], u[i + 4]);
                let high = _mm512_shuffle_f32x4::<0xdd>(u[i], u[i + 4]);
                let low2 = _mm512_shuffle_f32x4::<0x88>(u[i + 8], u[i + 12]);
                let high2 = _mm512_shuffle_f32x4::<0xdd>(u[i + 8], u[i + 12]);
                macro_rules! put {
                    ($at:expr, $v:expr) => {
                        if $at < b.width {
                            _mm512_mask_storeu_ps(b.to.add($at * b.to_stride), out, $v);
                        }
                    };
                }
                put!((i), _mm512_shuffle_f32x4::<0x88>(low, low2));
                put!((i + 8), _mm512_shuffle_f32x4::<0xdd>(low, low2));
                put!((i + 4), _mm512_shuffle_f32x4::<0x88>(high, high2));
                put!((i + 12), _mm512_shuffle_f32x4::<0xdd>(high, high2));
            }
        }
    }
}

/// The two halves added.
#[inline(always)]
fn halved(v: F32x16) -> __m256 {
    unsafe { _mm256_add_ps(_mm512_castps512_ps256(v.0), _mm512_extractf32x8_ps::<1>(v.0)) }
}
