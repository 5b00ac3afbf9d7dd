//! Four floats in one SSE register, which every x86-64 has: what [`Isa::Scalar`](crate::Isa::Scalar) is there. It does what
//! `scalar.rs` does for other machines; the compiler has a quarter of the work with it. What takes more than a few
//! instructions is a call: few machines run this level, and all carry its code.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: the instructions belong to the architecture.

use super::{Block, Kernel, Simd, operators};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct F32x4(__m128);

operators! { F32x4:
    Add add |a, b| unsafe { _mm_add_ps(a, b) };
    Sub sub |a, b| unsafe { _mm_sub_ps(a, b) };
    Mul mul |a, b| unsafe { _mm_mul_ps(a, b) };
    Div div |a, b| unsafe { _mm_div_ps(a, b) };
}

/// Four ones, then four zeros: a window into it selects the first lanes.
static LANES: [i32; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

impl F32x4 {
    #[inline(always)]
    fn lanes(self) -> [f32; 4] {
        let mut lanes = [0.0; 4];
        unsafe { _mm_storeu_ps(lanes.as_mut_ptr(), self.0) };
        lanes
    }
    #[inline(always)]
    fn with_sign_of(self, other: Self) -> Self {
        self.abs().or(other.sign_bit())
    }
    /// The whole numbers of this vector, which has no signs.
    #[inline(always)]
    fn rounded(self) -> Self {
        // Adding 2^23 leaves no bits for a fraction; larger numbers have none.
        let big = Self::splat(8_388_608.0);
        Self::select(self.lt(big), (self + big) - big, self)
    }
    /// The exact products of the lower two lanes and of the upper two.
    #[inline(always)]
    fn products(self, by: Self) -> [__m128d; 2] {
        let ([a, b], [c, d]) = (self.doubles(), by.doubles());
        unsafe { [_mm_mul_pd(a, c), _mm_mul_pd(b, d)] }
    }
    #[inline(always)]
    fn doubles(self) -> [__m128d; 2] {
        unsafe { [_mm_cvtps_pd(self.0), _mm_cvtps_pd(_mm_movehl_ps(self.0, self.0))] }
    }
    #[inline(always)]
    fn from_doubles([low, high]: [__m128d; 2]) -> Self {
        F32x4(unsafe { _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)) })
    }
}

impl Simd for F32x4 {
    type Int = __m128i;
    type Mask = __m128;
    const N: usize = 4;
    const REGISTERS: usize = 16;
    const FAST_LOOKUP: bool = false;
    const FUSED: bool = false;

    // Once for each kernel, not inside of everything that picks a level.
    #[inline(never)]
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out {
        unsafe { K::run::<Self>(args) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        F32x4(unsafe { _mm_set1_ps(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F32x4(unsafe { _mm_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm_storeu_ps(to, self.0) }
    }
    #[inline(never)]
    unsafe fn load_partial(from: *const f32, n: usize) -> Self {
        let mut lanes = [0.0; 4];
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n.min(4));
            Self::load(lanes.as_ptr())
        }
    }
    #[inline(never)]
    unsafe fn store_partial(self, to: *mut f32, n: usize) {
        let lanes = self.lanes();
        unsafe { std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n.min(4)) }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __m128) -> Self {
        unsafe { Self::load_partial(from, count(mask)) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: __m128) {
        unsafe { self.store_partial(to, count(mask)) }
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        unsafe {
            let two = _mm_castpd_ps(_mm_load_sd(from.cast()));
            F32x4(_mm_unpacklo_ps(two, two))
        }
    }
    #[inline(never)]
    unsafe fn gather(from: *const f32, indices: __m128i) -> Self {
        let [a, b, c, d] = Self::from_bits(indices).lanes().map(|i| i.to_bits() as i32 as isize);
        unsafe { F32x4(_mm_set_ps(*from.offset(d), *from.offset(c), *from.offset(b), *from.offset(a))) }
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> __m128i {
        unsafe {
            let bytes = _mm_cvtsi32_si128(from.cast::<i32>().read_unaligned());
            let words = _mm_unpacklo_epi8(bytes, bytes);
            _mm_srai_epi32::<24>(_mm_unpacklo_epi16(words, words))
        }
    }
    #[inline(always)]
    fn lookup(table: &[f32; 16], indices: __m128i) -> Self {
        let [a, b, c, d] = Self::from_bits(indices).lanes().map(|i| table[(i.to_bits() & 15) as usize]);
        F32x4(unsafe { _mm_set_ps(d, c, b, a) })
    }
    // The product is exact in f64, so only the sum rounds, and then the result: as good as one rounding here, and far
    // quicker than the library's exact one.
    #[inline(never)]
    fn fma(self, by: Self, plus: Self) -> Self {
        let ([a, b], [c, d]) = (self.products(by), plus.doubles());
        Self::from_doubles(unsafe { [_mm_add_pd(a, c), _mm_add_pd(b, d)] })
    }
    #[inline(never)]
    fn fnma(self, by: Self, from: Self) -> Self {
        let ([a, b], [c, d]) = (self.products(by), from.doubles());
        Self::from_doubles(unsafe { [_mm_sub_pd(c, a), _mm_sub_pd(d, b)] })
    }
    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        self * by + plus
    }
    #[inline(always)]
    fn mul_add_alternate(self, by: Self, other: Self) -> Self {
        let signs = unsafe { _mm_set_ps(0.0, -0.0, 0.0, -0.0) };
        self * by + other.xor(F32x4(signs))
    }
    #[inline(always)]
    fn swap_pairs(self) -> Self {
        F32x4(unsafe { _mm_shuffle_ps::<0b10_11_00_01>(self.0, self.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        F32x4(unsafe { _mm_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        F32x4(unsafe { _mm_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        F32x4(unsafe { _mm_sqrt_ps(self.0) })
    }
    #[inline(never)]
    fn floor(self) -> Self {
        let whole = self.round_even();
        let above = Self::select(self.lt(whole), Self::splat(1.0), Self::splat(0.0));
        (whole - above).with_sign_of(self)
    }
    #[inline(never)]
    fn ceil(self) -> Self {
        let whole = self.round_even();
        let below = Self::select(whole.lt(self), Self::splat(1.0), Self::splat(0.0));
        (whole + below).with_sign_of(self)
    }
    #[inline(never)]
    fn trunc(self) -> Self {
        self.abs().floor().with_sign_of(self)
    }
    #[inline(never)]
    fn round_even(self) -> Self {
        self.abs().rounded().with_sign_of(self)
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Self::splat(1.0) / self
    }
    #[inline(never)]
    fn ldexp(self, n: Self) -> Self {
        // In doubles the power and the product are exact, so that only the result is rounded.
        let [low, high] = self.doubles();
        let biased = Self::int_add(n.to_int(), Self::int(1023));
        Self::from_doubles(unsafe {
            let zero = _mm_setzero_si128();
            let power = |two| _mm_castsi128_pd(_mm_slli_epi64::<52>(two));
            [
                _mm_mul_pd(low, power(_mm_unpacklo_epi32(biased, zero))),
                _mm_mul_pd(high, power(_mm_unpackhi_epi32(biased, zero))),
            ]
        })
    }
    #[inline(always)]
    fn lt(self, other: Self) -> __m128 {
        unsafe { _mm_cmplt_ps(self.0, other.0) }
    }
    #[inline(always)]
    fn le(self, other: Self) -> __m128 {
        unsafe { _mm_cmple_ps(self.0, other.0) }
    }
    #[inline(always)]
    fn equal(self, other: Self) -> __m128 {
        unsafe { _mm_cmpeq_ps(self.0, other.0) }
    }
    #[inline(always)]
    fn mask_and(a: __m128, b: __m128) -> __m128 {
        unsafe { _mm_and_ps(a, b) }
    }
    #[inline(always)]
    fn any(mask: __m128) -> bool {
        unsafe { _mm_movemask_ps(mask) != 0 }
    }
    #[inline(always)]
    fn first(n: usize) -> __m128 {
        unsafe { _mm_loadu_ps(LANES.as_ptr().add(4 - n.min(4)).cast()) }
    }
    #[inline(always)]
    fn select(mask: __m128, yes: Self, no: Self) -> Self {
        F32x4(unsafe { _mm_or_ps(_mm_and_ps(mask, yes.0), _mm_andnot_ps(mask, no.0)) })
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F32x4(unsafe { _mm_and_ps(self.0, _mm_castsi128_ps(_mm_set1_epi32(bits as i32))) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        F32x4(unsafe { _mm_or_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        F32x4(unsafe { _mm_xor_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn to_bits(self) -> __m128i {
        unsafe { _mm_castps_si128(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: __m128i) -> Self {
        F32x4(unsafe { _mm_castsi128_ps(bits) })
    }
    #[inline(always)]
    fn to_int(self) -> __m128i {
        unsafe { _mm_cvtps_epi32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: __m128i) -> Self {
        F32x4(unsafe { _mm_cvtepi32_ps(int) })
    }
    #[inline(always)]
    fn int(x: i32) -> __m128i {
        unsafe { _mm_set1_epi32(x) }
    }
    #[inline(always)]
    fn int_add(a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_add_epi32(a, b) }
    }
    #[inline(always)]
    fn int_sub(a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn int_and(a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_and_si128(a, b) }
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: __m128i) -> __m128i {
        unsafe { _mm_sll_epi32(a, _mm_cvtsi32_si128(BY as i32)) }
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: __m128i) -> __m128i {
        unsafe { _mm_sra_epi32(a, _mm_cvtsi32_si128(BY as i32)) }
    }
    #[inline(always)]
    fn int_equal(a: __m128i, b: __m128i) -> __m128 {
        unsafe { _mm_castsi128_ps(_mm_cmpeq_epi32(a, b)) }
    }
    #[inline(always)]
    fn reduce_add(self) -> f32 {
        unsafe {
            let two = _mm_add_ps(self.0, _mm_movehl_ps(self.0, self.0));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    fn reduce_max(self) -> f32 {
        unsafe {
            let two = _mm_max_ps(self.0, _mm_movehl_ps(self.0, self.0));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    fn reduce_add4(four: [Self; 4]) -> [f32; 4] {
        four.map(|v| v.reduce_add())
    }
    #[inline(never)]
    unsafe fn transpose(b: Block) {
        for column in 0..b.width {
            for row in 0..b.to_width {
                // SAFETY: rows are clamped to those that are there; the caller's block covers the rest.
                unsafe {
                    *b.to.add(column * b.to_stride + row) = *b.from.add(row.min(b.rows - 1) * b.from_stride + column);
                }
            }
        }
    }
}

/// Lanes of a mask of the first ones.
#[inline(always)]
fn count(mask: __m128) -> usize {
    unsafe { _mm_movemask_ps(mask) }.count_ones() as usize
}
