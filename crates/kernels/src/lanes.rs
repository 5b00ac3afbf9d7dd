//! One vector of floats, the same code for every level: a kernel is written once over [`Lanes`], marked `inline(always)`,
//! and compiled inside one function per level that switches the instructions on. Outside of such a function the methods are
//! calls, correct but slow; so is what a closure does, which the compiler keeps as a function of its own.

use std::ops::Range;

/// A vector of [`Lanes::N`] floats. Every method needs the instructions of its level; that is the whole safety contract,
/// besides the pointers.
pub(crate) trait Lanes: Copy {
    const N: usize;
    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// The first `n` floats; the rest is 0 and not touched in memory.
    unsafe fn load_first(from: *const f32, n: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn store_first(self, to: *mut f32, n: usize);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self * factor + plus`.
    unsafe fn fma(self, factor: Self, plus: Self) -> Self;
    /// The larger; `other` where either is NaN.
    unsafe fn max(self, other: Self) -> Self;
    /// The smaller; `other` where either is NaN.
    unsafe fn min(self, other: Self) -> Self;
    /// `yes` where `self < than`, else `no`.
    unsafe fn if_less(self, than: Self, yes: Self, no: Self) -> Self;
    /// Lanes 0 and 1 change places, 2 and 3, and so on.
    unsafe fn swap_pairs(self) -> Self;
    /// `self * factor` less `other` in even lanes, plus `other` in odd ones.
    unsafe fn fma_alternate(self, factor: Self, other: Self) -> Self;
    /// Half as many floats, each of them twice.
    unsafe fn load_doubled(from: *const f32) -> Self;
    /// To the nearest whole number.
    unsafe fn round(self) -> Self;
    /// `self * 2^n` for whole `n` within `EXP_RANGE`.
    unsafe fn times_two_to(self, n: Self) -> Self;
    /// Arguments beyond these give the same as they do: 0 and infinity.
    const EXP_RANGE: Range<f32>;
    unsafe fn sum(self) -> f32;
    /// NaN where there is one or not, as it comes.
    unsafe fn largest(self) -> f32;
    /// The sums of four vectors.
    unsafe fn sums(four: [Self; 4]) -> [f32; 4];
    /// Moves `block.rows` times `block.width` floats (each at most `N`) so that rows become columns.
    unsafe fn transpose(block: Block);

    /// Vectors that lie one after the other.
    #[inline(always)]
    unsafe fn load_many<const C: usize>(from: *const f32) -> [Self; C] {
        // SAFETY: the caller's pointer is good for `C` vectors.
        unsafe {
            let mut many = [Self::splat(0.0); C];
            for i in 0..C {
                many[i] = Self::load(from.add(i * Self::N));
            }
            many
        }
    }
    /// `(exp(r) - 1, n)` with `exp(self) = exp(r) * 2^n`.
    #[inline(always)]
    unsafe fn exp_parts(self) -> (Self, Self) {
        // SAFETY: the caller has the instructions of this level.
        unsafe {
            let x = Self::splat(Self::EXP_RANGE.start).max(self);
            let x = Self::splat(Self::EXP_RANGE.end).min(x);
            let n = x.mul(Self::splat(std::f32::consts::LOG2_E)).round();
            // ln 2 in two parts, the first exact in few bits.
            let r = n.fma(Self::splat(-0.693_359_4), x);
            let r = n.fma(Self::splat(2.121_944_4e-4), r);
            // The series of (exp(r) - 1 - r) / r^2; |r| <= 0.35, so that the first term left out is below 1e-8.
            let mut p = Self::splat(1.0 / 5040.0);
            for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
                p = p.fma(r, Self::splat(c));
            }
            (p.fma(r.mul(r), r), n)
        }
    }
    /// `exp`; NaN stays.
    #[inline(always)]
    unsafe fn exp(self) -> Self {
        // SAFETY: as in `exp_parts`.
        unsafe {
            let (p, n) = self.exp_parts();
            p.add(Self::splat(1.0)).times_two_to(n)
        }
    }
    /// `exp(x) - 1`, exact near 0 and never infinite: large arguments count as 44.
    #[inline(always)]
    unsafe fn exp_minus_one(self) -> Self {
        // SAFETY: as in `exp_parts`.
        unsafe {
            let (p, n) = Self::splat(44.0).min(self).exp_parts();
            let one = Self::splat(1.0);
            let power = one.times_two_to(n);
            p.fma(power, power.sub(one))
        }
    }
    #[inline(always)]
    unsafe fn sigmoid(self) -> Self {
        // SAFETY: as in `exp_parts`.
        unsafe {
            let one = Self::splat(1.0);
            one.div(one.add(Self::splat(0.0).sub(self).exp()))
        }
    }
    #[inline(always)]
    unsafe fn tanh(self) -> Self {
        // SAFETY: as in `exp_parts`.
        unsafe {
            let e = self.add(self).exp_minus_one();
            e.div(e.add(Self::splat(2.0)))
        }
    }
}

/// A block to transpose, at most `N` by `N`.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub from: *const f32,
    /// Floats from row to row of the source.
    pub from_stride: usize,
    pub to: *mut f32,
    pub to_stride: usize,
    /// Rows of the source that are there; the columns of the result beyond repeat the last one, up to `N`.
    pub rows: usize,
    /// Columns of the source, which is as many rows as are written.
    pub width: usize,
    /// Floats written to each row of the result.
    pub to_width: usize,
}

/// Without special instructions: four floats.
#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; 4]);

macro_rules! each_lane {
    ($($name:ident($($other:ident),*) = $lane:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name(self $(, $other: Self)*) -> Self {
            #[allow(clippy::redundant_closure_call)]
            Plain(std::array::from_fn(|i| ($lane)(self.0[i] $(, $other.0[i])*)))
        }
    )*};
}

impl Lanes for Plain {
    const N: usize = 4;
    const EXP_RANGE: Range<f32> = -88.1..88.8;
    each_lane! {
        add(other) = |a: f32, b: f32| a + b;
        sub(other) = |a: f32, b: f32| a - b;
        mul(other) = |a: f32, b: f32| a * b;
        div(other) = |a: f32, b: f32| a / b;
        fma(factor, plus) = |a: f32, b: f32, c: f32| a * b + c;
        max(other) = |a: f32, b: f32| if a > b { a } else { b };
        min(other) = |a: f32, b: f32| if a < b { a } else { b };
        if_less(than, yes, no) = |a: f32, b: f32, yes: f32, no: f32| if a < b { yes } else { no };
        round() = |a: f32| (a + 12_582_912.0) - 12_582_912.0;
        times_two_to(n) = |a: f32, n: f32| a * f32::from_bits((((n as i32) + 127) << 23) as u32);
    }
    #[inline(always)]
    unsafe fn swap_pairs(self) -> Self {
        let [a, b, c, d] = self.0;
        Plain([b, a, d, c])
    }
    #[inline(always)]
    unsafe fn fma_alternate(self, factor: Self, other: Self) -> Self {
        let ([a, b, c, d], f, o) = (self.0, factor.0, other.0);
        Plain([a * f[0] - o[0], b * f[1] + o[1], c * f[2] - o[2], d * f[3] + o[3]])
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        // SAFETY: the caller's pointer is good for two floats.
        let (a, b) = unsafe { (*from, *from.add(1)) };
        Plain([a, a, b, b])
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Plain([x; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's pointer is good for four floats.
        unsafe { Plain(from.cast::<[f32; 4]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        // SAFETY: only the first `n` are read.
        unsafe { Plain(std::array::from_fn(|i| if i < n { *from.add(i) } else { 0.0 })) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's pointer is good for four floats.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, n: usize) {
        for i in 0..n.min(4) {
            // SAFETY: only the first `n` are written.
            unsafe { *to.add(i) = self.0[i] };
        }
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        (self.0[0] + self.0[2]) + (self.0[1] + self.0[3])
    }
    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        self.0[0].max(self.0[1]).max(self.0[2].max(self.0[3]))
    }
    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        // SAFETY: plain code.
        four.map(|v| unsafe { v.sum() })
    }
    #[inline(always)]
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

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, Lanes};
    use std::arch::x86_64::*;
    use std::ops::Range;

    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512);
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(__m256);

    macro_rules! with {
        ($of:ident: $($name:ident($own:ident $(, $other:ident)*) = $lane:expr;)*) => {$(
            #[inline(always)]
            unsafe fn $name(self $(, $other: Self)*) -> Self {
                let $own = self.0;
                $(let $other = $other.0;)*
                // SAFETY: the caller has the instructions of this level.
                unsafe { $of($lane) }
            }
        )*};
    }

    #[inline(always)]
    fn first(n: usize) -> __mmask16 {
        if n >= 16 { 0xffff } else { ((1u32 << n) - 1) as __mmask16 }
    }

    #[inline(always)]
    unsafe fn halved(v: Avx512) -> Avx2 {
        // SAFETY: the caller has the instructions of this level.
        unsafe { Avx2(_mm256_add_ps(_mm512_castps512_ps256(v.0), _mm512_extractf32x8_ps::<1>(v.0))) }
    }

    impl Lanes for Avx512 {
        const N: usize = 16;
        const EXP_RANGE: Range<f32> = -104.0..89.0;
        with! { Avx512:
            add(a, b) = _mm512_add_ps(a, b);
            sub(a, b) = _mm512_sub_ps(a, b);
            mul(a, b) = _mm512_mul_ps(a, b);
            div(a, b) = _mm512_div_ps(a, b);
            fma(a, b, c) = _mm512_fmadd_ps(a, b, c);
            max(a, b) = _mm512_max_ps(a, b);
            min(a, b) = _mm512_min_ps(a, b);
            if_less(a, b, yes, no) = _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes);
            swap_pairs(a) = _mm512_permute_ps::<0b10_11_00_01>(a);
            fma_alternate(a, factor, other) = _mm512_fmaddsub_ps(a, factor, other);
            round(a) = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT }>(a);
            times_two_to(a, n) = _mm512_scalef_ps(a, n);
        }
        #[inline(always)]
        unsafe fn load_doubled(from: *const f32) -> Self {
            // SAFETY: the caller's pointer is good for 8 floats.
            unsafe {
                let order = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
                Avx512(_mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(from))))
            }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: the caller has the instructions of this level.
            unsafe { Avx512(_mm512_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's pointer is good for 16 floats.
            unsafe { Avx512(_mm512_loadu_ps(from)) }
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, n: usize) -> Self {
            // SAFETY: masked lanes are not touched.
            unsafe { Avx512(_mm512_maskz_loadu_ps(first(n), from)) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller's pointer is good for 16 floats.
            unsafe { _mm512_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, n: usize) {
            // SAFETY: masked lanes are not touched.
            unsafe { _mm512_mask_storeu_ps(to, first(n), self.0) }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the caller has the instructions of this level.
            unsafe { _mm512_reduce_add_ps(self.0) }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the caller has the instructions of this level.
            unsafe { _mm512_reduce_max_ps(self.0) }
        }
        #[inline(always)]
        unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
            // SAFETY: the caller has the instructions of this level.
            unsafe {
                let [a, b, c, d] = four;
                Avx2::sums([halved(a), halved(b), halved(c), halved(d)])
            }
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

    /// Ones for the first lanes: read from `8 - n` on.
    static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn first8(n: usize) -> __m256i {
        // SAFETY: the caller has the instructions; 8 numbers from `8 - n` on lie inside of the table.
        unsafe { _mm256_loadu_si256(FIRST.as_ptr().add(8 - n.min(8)).cast()) }
    }

    impl Lanes for Avx2 {
        const N: usize = 8;
        const EXP_RANGE: Range<f32> = -88.1..88.8;
        with! { Avx2:
            add(a, b) = _mm256_add_ps(a, b);
            sub(a, b) = _mm256_sub_ps(a, b);
            mul(a, b) = _mm256_mul_ps(a, b);
            div(a, b) = _mm256_div_ps(a, b);
            fma(a, b, c) = _mm256_fmadd_ps(a, b, c);
            max(a, b) = _mm256_max_ps(a, b);
            min(a, b) = _mm256_min_ps(a, b);
            if_less(a, b, yes, no) = _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b));
            swap_pairs(a) = _mm256_permute_ps::<0b10_11_00_01>(a);
            fma_alternate(a, factor, other) = _mm256_fmaddsub_ps(a, factor, other);
            round(a) = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
            times_two_to(a, n) = {
                let n = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
                _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n)))
            };
        }
        #[inline(always)]
        unsafe fn load_doubled(from: *const f32) -> Self {
            // SAFETY: the caller's pointer is good for 4 floats.
            unsafe {
                let order = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
                Avx2(_mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), order))
            }
        }
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: the caller has the instructions of this level.
            unsafe { Avx2(_mm256_set1_ps(x)) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's pointer is good for 8 floats.
            unsafe { Avx2(_mm256_loadu_ps(from)) }
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, n: usize) -> Self {
            // SAFETY: masked lanes are not touched.
            unsafe { Avx2(_mm256_maskload_ps(from, first8(n))) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller's pointer is good for 8 floats.
            unsafe { _mm256_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, n: usize) {
            // SAFETY: masked lanes are not touched.
            unsafe { _mm256_maskstore_ps(to, first8(n), self.0) }
        }
        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: the caller has the instructions of this level.
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }
        #[inline(always)]
        unsafe fn largest(self) -> f32 {
            // SAFETY: the caller has the instructions of this level.
            unsafe {
                let four = _mm_max_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
            }
        }
        #[inline(always)]
        unsafe fn sums([a, b, c, d]: [Self; 4]) -> [f32; 4] {
            // SAFETY: the caller has the instructions of this level.
            unsafe {
                let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a.0, b.0), _mm256_hadd_ps(c.0, d.0));
                let four = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
                let mut out = [0.0; 4];
                _mm_storeu_ps(out.as_mut_ptr(), four);
                out
            }
        }
        #[inline(always)]
        unsafe fn transpose(b: Block) {
            // SAFETY: rows are clamped to those that are there, masks keep loads and stores inside of the block.
            unsafe {
                let mask = first8(b.width);
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
                let out = first8(b.to_width);
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
}
