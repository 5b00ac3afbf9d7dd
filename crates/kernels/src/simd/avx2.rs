//! 8 floats in one AVX2 register. A truth value is a lane of ones.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: only code that was dispatched to this level has the type.

use super::{Block, Kernel, Simd, operators};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct F32x8(__m256);

operators! { F32x8:
    Add add |a, b| unsafe { _mm256_add_ps(a, b) };
    Sub sub |a, b| unsafe { _mm256_sub_ps(a, b) };
    Mul mul |a, b| unsafe { _mm256_mul_ps(a, b) };
    Div div |a, b| unsafe { _mm256_div_ps(a, b) };
}

/// Eight ones, then eight zeros: a window into it selects the first lanes.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn first(n: usize) -> __m256i {
    unsafe { _mm256_loadu_si256(LANES.as_ptr().add(8 - n.min(8)).cast()) }
}

impl Simd for F32x8 {
    type Int = __m256i;
    type Mask = __m256;
    const N: usize = 8;
    const REGISTERS: usize = 16;
    const FAST_LOOKUP: bool = false;
    const FUSED: bool = true;

    #[target_feature(enable = "avx2,fma")]
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out {
        unsafe { K::run::<Self>(args) }
    }

    #[inline(always)]
    fn splat(x: f32) -> Self {
        F32x8(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F32x8(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f32, n: usize) -> Self {
        F32x8(unsafe { _mm256_maskload_ps(from, first(n)) })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, n: usize) {
        unsafe { _mm256_maskstore_ps(to, first(n), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, indices: Self::Int) -> Self {
        F32x8(unsafe { _mm256_i32gather_ps::<4>(from, indices) })
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> __m256i {
        unsafe { _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast())) }
    }
    #[inline(always)]
    fn lookup(table: &[f32; 16], indices: __m256i) -> Self {
        unsafe {
            let low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), indices);
            let high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr().add(8)), indices);
            // The bit of 8 goes to where a sign is.
            F32x8(_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32::<28>(indices))))
        }
    }
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        F32x8(unsafe { _mm256_fmadd_ps(self.0, by.0, plus.0) })
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        F32x8(unsafe { _mm256_fnmadd_ps(self.0, by.0, from.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F32x8(unsafe { _mm256_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F32x8(unsafe { _mm256_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F32x8(unsafe { _mm256_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn floor(self) -> Self {
        F32x8(unsafe { _mm256_floor_ps(self.0) })
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        F32x8(unsafe { _mm256_ceil_ps(self.0) })
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        F32x8(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(self.0) })
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        F32x8(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0) })
    }
    // The guess of this level has 11 bits, so one step of Newton's is not enough; a division costs as much as two.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::splat(1.0) / self
    }
    #[inline(always)]
    fn ldexp(self, n: Self) -> Self {
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
    fn mask_and(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_and_ps(a, b) }
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
        F32x8(unsafe { _mm256_blendv_ps(no.0, yes.0, mask) })
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F32x8(unsafe { _mm256_and_ps(self.0, _mm256_set1_ps(f32::from_bits(bits))) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        F32x8(unsafe { _mm256_or_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        F32x8(unsafe { _mm256_xor_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn to_bits(self) -> __m256i {
        unsafe { _mm256_castps_si256(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: __m256i) -> Self {
        F32x8(unsafe { _mm256_castsi256_ps(bits) })
    }
    #[inline(always)]
    fn to_int(self) -> __m256i {
        unsafe { _mm256_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: __m256i) -> Self {
        F32x8(unsafe { _mm256_cvtepi32_ps(int) })
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
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __m256) -> Self {
        F32x8(unsafe { _mm256_maskload_ps(from, _mm256_castps_si256(mask)) })
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __m256) {
        unsafe { _mm256_maskstore_ps(to, _mm256_castps_si256(mask), self.0) }
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        unsafe {
            let order = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
            F32x8(_mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), order))
        }
    }
    #[inline(always)]
    fn mul_add_alternate(self, by: Self, other: Self) -> Self {
        F32x8(unsafe { _mm256_fmaddsub_ps(self.0, by.0, other.0) })
    }
    #[inline(always)]
    fn swap_pairs(self) -> Self {
        F32x8(unsafe { _mm256_permute_ps::<0b10_11_00_01>(self.0) })
    }
    #[inline(always)]
    fn reduce_add(self) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn reduce_max(self) -> f32 {
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn reduce_add4([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        sums_of_halves([a.0, b.0, c.0, d.0])
    }
    #[inline(always)]
    unsafe fn transpose(b: Block) {
        // SAFETY: rows are clamped to those that are there, masks keep loads and stores inside of the block.
        unsafe {
            let mask = first(b.width);
            macro_rules! row {
                ($i:expr) => {
                    _mm256_maskload_ps(b.from.add(($i).min(b.rows - 1) * b.from_stride), mask)
                };
            }
            let mut t = [_mm256_setzero_ps(); 8];
            for i in 0..4 {
                let (x, y) = (row!(2 * i), row!(2 * i + 1));
                t[2 * i] = _mm256_unpacklo_ps(x, y);
                t[2 * i + 1] = _mm256_unpackhi_ps(x, y);
            }
            let mut u = [_mm256_setzero_ps(); 8];
            for i in 0..2 {
                let (w, x) = (_mm256_castps_pd(t[4 * i]), _mm256_castps_pd(t[4 * i + 1]));
                let (y, z) = (_mm256_castps_pd(t[4 * i + 2]), _mm256_castps_pd(t[4 * i + 3]));
                u[4 * i] = _mm256_castpd_ps(_mm256_unpacklo_pd(w, y));
                u[4 * i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(w, y));
                u[4 * i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, z));
                u[4 * i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, z));
            }
            let out = first(b.to_width);
            macro_rules! put {
                ($at:expr, $v:expr) => {
                    if $at < b.width {
                        _mm256_maskstore_ps(b.to.add($at * b.to_stride), out, $v);
                    }
                };
            }
            for i in 0..4 {
                put!((i), _mm256_permute2f128_ps::<0x20>(u[i], u[i + 4]));
                put!((i + 4), _mm256_permute2f128_ps::<0x31>(u[i], u[i + 4]));
            }
        }
    }
}

/// The sums of four vectors.
#[inline(always)]
pub(super) fn sums_of_halves([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
    unsafe {
        let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        let four = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
        let mut out = [0.0; 4];
        _mm_storeu_ps(out.as_mut_ptr(), four);
        out
    }
}
