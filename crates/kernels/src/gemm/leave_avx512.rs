//! How sums leave the buffer of a tile in AVX-512 registers. What is usual has a function of its own, without a question in the
//! innermost loop; everything else is one loop over all that an epilogue may have.

use super::leave::{Added, Leaving, SUMS, Short, ShortAct, To};
use super::task::{Simple, Target};
use crate::{Halves, Quantizer, RoundTrip};
use std::arch::x86_64::*;

const LANES: usize = 16;

/// Takes sums out of the buffer as the target says.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline(never)]
pub(super) unsafe fn leave(target: &Target, sums: *mut f32, rows: usize) {
    let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
    // SAFETY: the caller promises that `leaving` is set and the rectangle this thread's own; `Leaving::new` has checked the
    // lengths, and masks leave out what lies beyond the last column.
    unsafe {
        let l = &*target.leaving;
        if l.in_steps {
            return match (l.round_trip.is_some(), matches!(l.add, Added::None)) {
                (false, true) => in_steps::<false, false>(target, l, sums, rows),
                (false, false) => in_steps::<false, true>(target, l, sums, rows),
                (true, true) => in_steps::<true, false>(target, l, sums, rows),
                (true, false) => in_steps::<true, true>(target, l, sums, rows),
            };
        }
        if let Some(short) = &l.short {
            return match (short.halves, short.act) {
                (Halves::Bf16, ShortAct::Limits(..)) => leave_short::<LIMITS, false>(target, short, sums, rows),
                (Halves::Bf16, ShortAct::Hard(..)) => leave_short::<HARD, false>(target, short, sums, rows),
                (Halves::Bf16, ShortAct::Swish(_)) => leave_short::<SWISH, false>(target, short, sums, rows),
                (Halves::Bf16, ShortAct::Gelu(_)) => leave_short::<GELU, false>(target, short, sums, rows),
                (Halves::F16, ShortAct::Hard(..)) => leave_short::<HARD, true>(target, short, sums, rows),
                (Halves::F16, _) => leave_short::<LIMITS, true>(target, short, sums, rows),
            };
        }
        let ([before, behind], deferred, after) = (l.adds(), l.is_deferred(), l.after());
        let (p, q) = (_mm512_set1_ps(l.post.p), _mm512_set1_ps(l.post.q));
        let add = |row: usize, column: usize, mask: u16| match l.add {
            Added::None => zero,
            Added::F32(data, stride) => _mm512_maskz_loadu_ps(mask, data.add(row * stride + column)),
            Added::Half(Halves::F16, data, stride) => {
                _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, data.add(row * stride + column).cast()))
            }
            Added::Half(Halves::Bf16, data, stride) => {
                let bits = _mm256_maskz_loadu_epi16(mask, data.add(row * stride + column).cast());
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)))
            }
            Added::U8 { data, stride, scale, offset } => {
                let bytes = _mm_maskz_loadu_epi8(mask, data.add(row * stride + column).cast());
                let x = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
                _mm512_fmadd_ps(x, _mm512_set1_ps(scale), _mm512_set1_ps(offset))
            }
        };
        for v in 0..target.columns.div_ceil(LANES) {
            let left = target.columns - v * LANES;
            let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            let column = target.column + v * LANES;
            let scale = if l.scale.is_null() { one } else { _mm512_maskz_loadu_ps(mask, l.scale.add(column)) };
            let bias = if l.bias.is_null() { zero } else { _mm512_maskz_loadu_ps(mask, l.bias.add(column)) };
            let offset = if l.offset.is_null() { zero } else { _mm512_maskz_loadu_ps(mask, l.offset.add(column)) };
            for i in 0..rows {
                let at = sums.add(i * SUMS + v * LANES);
                let mut x = _mm512_load_ps(at);
                if l.integer {
                    x = _mm512_cvtepi32_ps(_mm512_castps_si512(x));
                }
                x = _mm512_fmadd_ps(x, scale, bias);
                if let Some(trip) = &l.round_trip {
                    let quantizer = &trip.quantizer;
                    let y = _mm512_fmadd_ps(x, _mm512_set1_ps(quantizer.inverse), _mm512_set1_ps(quantizer.shift));
                    let y = _mm512_max_ps(y, _mm512_set1_ps(quantizer.low));
                    let y = _mm512_min_ps(y, _mm512_set1_ps(quantizer.high));
                    let y = _mm512_roundscale_ps::<0>(y);
                    x = _mm512_fmadd_ps(y, _mm512_set1_ps(trip.scale), _mm512_set1_ps(trip.offset));
                }
                if !l.offset.is_null() {
                    x = _mm512_add_ps(x, offset);
                }
                if before {
                    x = _mm512_add_ps(x, add(target.row + i, column, mask));
                }
                // The number itself comes second in every comparison, so that NaN stays.
                x = match l.post.simple {
                    Simple::None => x,
                    Simple::Relu => _mm512_max_ps(zero, x),
                    Simple::Clamp => _mm512_min_ps(q, _mm512_max_ps(p, x)),
                    Simple::Leaky => _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, zero), x, p),
                    Simple::HardSwish => {
                        let line = _mm512_fmadd_ps(x, p, q);
                        _mm512_mul_ps(x, _mm512_min_ps(one, _mm512_max_ps(zero, line)))
                    }
                    Simple::HardSigmoid => _mm512_min_ps(one, _mm512_max_ps(zero, _mm512_fmadd_ps(x, p, q))),
                };
                if behind {
                    x = _mm512_add_ps(x, add(target.row + i, column, mask));
                }
                if let Some([factor, term]) = after {
                    x = _mm512_fmadd_ps(x, _mm512_set1_ps(factor), _mm512_set1_ps(term));
                }
                match deferred {
                    true => _mm512_store_ps(at, x),
                    false => store(&l.to, (target.row + i) * l.ldc + column, mask, x),
                }
            }
        }
        if !deferred {
            return;
        }
        l.deferred(target, sums, rows);
        for v in 0..target.columns.div_ceil(LANES) {
            let left = target.columns - v * LANES;
            let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            for i in 0..rows {
                let x = _mm512_load_ps(sums.add(i * SUMS + v * LANES));
                store(&l.to, (target.row + i) * l.ldc + target.column + v * LANES, mask, x);
            }
        }
    }
}

/// Numbers that every element of a result in steps meets.
pub(super) struct Steps {
    low: __m512,
    zero: __m512i,
    /// Least and largest number of the rounding between, its scale and offset.
    trip: [__m512; 4],
    /// Scale and offset of the addend, inverse and shift of the result.
    add: [__m512; 4],
}

impl Steps {
    /// Of what leaves, and where its addend lies.
    // Vectors go through no function that is compiled for less, such as those of `Option` and arrays.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    pub(super) fn new(l: &Leaving<'_>, quantizer: &Quantizer) -> (Steps, (*const u8, usize)) {
        let none = _mm512_setzero_ps();
        let mut steps = Steps {
            low: _mm512_set1_ps(quantizer.low),
            zero: _mm512_set1_epi32(quantizer.zero),
            trip: [none; 4],
            add: [none; 4],
        };
        if let Some(RoundTrip { quantizer, scale, offset }) = l.round_trip {
            let (low, high) = (_mm512_set1_ps(quantizer.low), _mm512_set1_ps(quantizer.high));
            steps.trip = [low, high, _mm512_set1_ps(scale), _mm512_set1_ps(offset)];
        }
        let mut added = (std::ptr::null(), 0);
        if let Added::U8 { data, stride, scale, offset } = l.add {
            added = (data, stride);
            let (inverse, shift) = (_mm512_set1_ps(quantizer.inverse), _mm512_set1_ps(quantizer.shift));
            steps.add = [_mm512_set1_ps(scale), _mm512_set1_ps(offset), inverse, shift];
        }
        (steps, added)
    }

    /// Scale, bias, offset and limit of the columns of a mask from `column` on.
    ///
    /// # Safety
    /// Lists of the epilogue have those columns.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    pub(super) unsafe fn line(l: &Leaving<'_>, quantizer: &Quantizer, column: usize, mask: u16) -> [__m512; 4] {
        // SAFETY: the caller's promise.
        unsafe {
            let none = _mm512_setzero_ps();
            let offset = if l.offset.is_null() { none } else { _mm512_maskz_loadu_ps(mask, l.offset.add(column)) };
            let mut most = _mm512_set1_ps(quantizer.high);
            if !l.most.is_null() {
                most = _mm512_min_ps(most, _mm512_maskz_loadu_ps(mask, l.most.add(column)));
            }
            let (scale, bias) = (l.scale.add(column), l.bias.add(column));
            [_mm512_maskz_loadu_ps(mask, scale), _mm512_maskz_loadu_ps(mask, bias), offset, most]
        }
    }

    /// The bytes of sixteen sums, each as an integer.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    pub(super) fn of<const TRIP: bool, const ADD: bool>(&self, x: __m512, line: [__m512; 4], add: __m128i) -> __m512i {
        let [scale, bias, offset_of_column, most] = line;
        let mut x = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_castps_si512(x)), scale, bias);
        if TRIP {
            let [low, high, scale, offset] = self.trip;
            let whole = _mm512_roundscale_ps::<0>(_mm512_min_ps(_mm512_max_ps(x, low), high));
            x = _mm512_add_ps(_mm512_fmadd_ps(whole, scale, offset), offset_of_column);
        }
        if ADD {
            let add = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(add));
            let [scale, offset, inverse, shift] = self.add;
            x = _mm512_add_ps(x, _mm512_fmadd_ps(add, scale, offset));
            x = _mm512_fmadd_ps(x, inverse, shift);
        }
        // A number that is none becomes the least.
        let x = _mm512_min_ps(_mm512_max_ps(x, self.low), most);
        _mm512_add_epi32(_mm512_cvtps_epi32(x), self.zero)
    }
}

/// Where bytes of two rows lie after packing, with lanes of four side by side.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn order_of_rows() -> __m512i {
    _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}

/// Takes sums out of the buffer as bytes, where [`Leaving::in_steps`]; two rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn in_steps<const TRIP: bool, const ADD: bool>(target: &Target, l: &Leaving<'_>, sums: *const f32, rows: usize) {
    let To::U8(to, quantizer) = l.to else { return };
    let (steps, (added, add_stride)) = Steps::new(l, &quantizer);
    // Bytes of two rows come out of packing with lanes of four side by side.
    let order = order_of_rows();
    // SAFETY: as in `leave`.
    unsafe {
        let line = |v: usize, mask: u16| Steps::line(l, &quantizer, target.column + v * LANES, mask);
        let at = |row: usize, v: usize| (target.row + row) * l.ldc + target.column + v * LANES;
        let one = |row: usize, v: usize, mask: u16, line: [__m512; 4]| {
            let add = match ADD {
                true => {
                    let from = (target.row + row) * add_stride + target.column + v * LANES;
                    _mm_maskz_loadu_epi8(mask, added.wrapping_add(from).cast())
                }
                false => _mm_setzero_si128(),
            };
            steps.of::<TRIP, ADD>(_mm512_load_ps(sums.add(row * SUMS + v * LANES)), line, add)
        };
        let mut first = 0;
        if target.columns == 2 * LANES {
            let lines = [line(0, !0), line(1, !0)];
            while first < rows {
                // The last row of an odd number is taken twice.
                let second = (first + 1).min(rows - 1);
                let a = _mm512_packs_epi32(one(first, 0, !0, lines[0]), one(first, 1, !0, lines[1]));
                let b = _mm512_packs_epi32(one(second, 0, !0, lines[0]), one(second, 1, !0, lines[1]));
                let bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b));
                _mm256_storeu_si256(to.add(at(first, 0)).cast(), _mm512_castsi512_si256(bytes));
                _mm256_storeu_si256(to.add(at(second, 0)).cast(), _mm512_extracti64x4_epi64::<1>(bytes));
                first += 2;
            }
            return;
        }
        for v in 0..target.columns.div_ceil(LANES) {
            let left = target.columns - v * LANES;
            let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            let line = line(v, mask);
            for row in 0..rows {
                let bytes = _mm512_cvtepi32_epi8(one(row, v, mask, line));
                _mm_mask_storeu_epi8(to.add(at(row, v)).cast(), mask, bytes);
            }
        }
    }
}

pub(super) const LIMITS: usize = 0;
pub(super) const SWISH: usize = 1;
pub(super) const GELU: usize = 2;
pub(super) const HARD: usize = 3;

/// `x / (1 + exp(-u))`, to 3e-4 of itself.
#[target_feature(enable = "avx512f,fma")]
#[inline]
fn gated(x: __m512, u: __m512) -> __m512 {
    let t = _mm512_mul_ps(u, _mm512_set1_ps(-std::f32::consts::LOG2_E));
    // The number itself comes second, so that NaN stays; beyond the limits powers are 0 or infinite.
    let t = _mm512_min_ps(_mm512_set1_ps(130.0), _mm512_max_ps(_mm512_set1_ps(-130.0), t));
    let n = _mm512_roundscale_ps::<0>(t);
    let f = _mm512_sub_ps(t, n);
    let p = _mm512_fmadd_ps(_mm512_set1_ps(0.055_875_87), f, _mm512_set1_ps(0.242_296_5));
    let p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.693_127_2));
    let p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999_948_14));
    let power = _mm512_scalef_ps(p, n);
    _mm512_mul_ps(x, _mm512_rcp14_ps(_mm512_add_ps(power, _mm512_set1_ps(1.0))))
}

/// The numbers of a function, as [`acted`] takes them.
pub(super) fn numbers_of(act: ShortAct) -> [f32; 3] {
    match act {
        ShortAct::Limits(low, high) | ShortAct::Hard(low, high) => [low, high, 0.0],
        ShortAct::Swish(factor) => [factor, 0.0, 0.0],
        ShortAct::Gelu(numbers) => numbers,
    }
}

/// A function with its numbers.
#[target_feature(enable = "avx512f,fma")]
#[inline]
pub(super) fn acted<const ACT: usize>(x: __m512, [a, b, c]: [__m512; 3]) -> __m512 {
    match ACT {
        // The number itself comes second, so that NaN stays.
        LIMITS => _mm512_min_ps(b, _mm512_max_ps(a, x)),
        SWISH => gated(x, _mm512_mul_ps(x, a)),
        HARD => {
            let line = _mm512_max_ps(_mm512_setzero_ps(), _mm512_fmadd_ps(x, a, b));
            _mm512_mul_ps(x, _mm512_min_ps(_mm512_set1_ps(1.0), line))
        }
        _ => {
            let t = _mm512_min_ps(_mm512_set1_ps(25.0), _mm512_mul_ps(x, x));
            let u = _mm512_fmadd_ps(_mm512_fmadd_ps(c, t, b), t, a);
            gated(x, _mm512_mul_ps(x, u))
        }
    }
}

/// The usual end of sums of floats, without a question in the innermost loop: a bias, an addend, a function, 16 bits.
///
/// # Safety
/// As [`leave`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")]
unsafe fn leave_short<const ACT: usize, const F16: bool>(
    target: &Target,
    short: &Short,
    sums: *const f32,
    rows: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match (target.columns == 2 * LANES, short.add.is_null()) {
            (true, true) => whole_rows::<ACT, F16, false>(target, short, sums, rows),
            (true, false) => whole_rows::<ACT, F16, true>(target, short, sums, rows),
            (false, _) => cut_rows::<ACT, F16>(target, short, sums, rows),
        }
    }
}

/// Rows of two whole vectors.
///
/// # Safety
/// As [`leave`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")]
#[inline]
unsafe fn whole_rows<const ACT: usize, const F16: bool, const ADD: bool>(
    target: &Target,
    short: &Short,
    sums: *const f32,
    rows: usize,
) {
    let [a, b, c] = numbers_of(short.act);
    let (a, b, c) = (_mm512_set1_ps(a), _mm512_set1_ps(b), _mm512_set1_ps(c));
    // SAFETY: the caller's promise.
    unsafe {
        let l = &*target.leaving;
        let (mut low, mut high) = (_mm512_setzero_ps(), _mm512_setzero_ps());
        if !l.bias.is_null() {
            low = _mm512_loadu_ps(l.bias.add(target.column));
            high = _mm512_loadu_ps(l.bias.add(target.column + LANES));
        }
        let mut from = sums;
        let mut to = short.to.wrapping_add(target.row * l.ldc + target.column);
        let mut add = short.add.wrapping_add(target.row * short.add_stride + target.column);
        let (has_after, [factor, term]) = (short.after.is_some(), short.after.unwrap_or([1.0, 0.0]));
        let (factor, term) = (_mm512_set1_ps(factor), _mm512_set1_ps(term));
        for _ in 0..rows {
            let mut x = _mm512_add_ps(_mm512_load_ps(from), low);
            let mut y = _mm512_add_ps(_mm512_load_ps(from.wrapping_add(LANES)), high);
            if ADD {
                let more = widened::<F16>(_mm256_loadu_si256(add.cast()));
                let rest = widened::<F16>(_mm256_loadu_si256(add.wrapping_add(LANES).cast()));
                if short.add_last {
                    x = _mm512_add_ps(acted::<ACT>(x, [a, b, c]), more);
                    y = _mm512_add_ps(acted::<ACT>(y, [a, b, c]), rest);
                } else {
                    x = acted::<ACT>(_mm512_add_ps(x, more), [a, b, c]);
                    y = acted::<ACT>(_mm512_add_ps(y, rest), [a, b, c]);
                }
            } else {
                x = acted::<ACT>(x, [a, b, c]);
                y = acted::<ACT>(y, [a, b, c]);
            }
            if has_after {
                x = _mm512_fmadd_ps(x, factor, term);
                y = _mm512_fmadd_ps(y, factor, term);
            }
            if F16 {
                _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
                _mm256_storeu_si256(to.wrapping_add(LANES).cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(y));
            } else {
                let bits: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(y, x));
                _mm512_storeu_si512(to.cast(), bits);
            }
            from = from.wrapping_add(SUMS);
            to = to.wrapping_add(l.ldc);
            add = add.wrapping_add(short.add_stride);
        }
    }
}

/// Sixteen numbers of 16 bits as floats.
#[target_feature(enable = "avx512f")]
#[inline]
fn widened<const F16: bool>(bits: __m256i) -> __m512 {
    match F16 {
        true => _mm512_cvtph_ps(bits),
        false => _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits))),
    }
}

/// Rows of less than two vectors.
///
/// # Safety
/// As [`leave`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")]
unsafe fn cut_rows<const ACT: usize, const F16: bool>(target: &Target, short: &Short, sums: *const f32, rows: usize) {
    let [a, b, c] = numbers_of(short.act);
    let (a, b, c) = (_mm512_set1_ps(a), _mm512_set1_ps(b), _mm512_set1_ps(c));
    // SAFETY: the caller's promise.
    unsafe {
        let l = &*target.leaving;
        for v in 0..target.columns.div_ceil(LANES) {
            let left = target.columns - v * LANES;
            let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            let column = target.column + v * LANES;
            let bias = match l.bias.is_null() {
                true => _mm512_setzero_ps(),
                false => _mm512_maskz_loadu_ps(mask, l.bias.add(column)),
            };
            let mut to = short.to.add(target.row * l.ldc + column);
            let mut from = sums.add(v * LANES);
            let mut add = short.add.wrapping_add(target.row * short.add_stride + column);
            for _ in 0..rows {
                let mut x = _mm512_add_ps(_mm512_load_ps(from), bias);
                let added = match short.add.is_null() {
                    true => _mm512_setzero_ps(),
                    false => widened::<F16>(_mm256_maskz_loadu_epi16(mask, add.cast())),
                };
                if !short.add_last {
                    x = _mm512_add_ps(x, added);
                }
                x = acted::<ACT>(x, [a, b, c]);
                if short.add_last {
                    x = _mm512_add_ps(x, added);
                }
                if let Some([factor, term]) = short.after {
                    x = _mm512_fmadd_ps(x, _mm512_set1_ps(factor), _mm512_set1_ps(term));
                }
                let bits: __m256i = match F16 {
                    true => _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x),
                    false => std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x)),
                };
                match mask {
                    0xffff => _mm256_storeu_si256(to.cast(), bits),
                    _ => _mm256_mask_storeu_epi16(to.cast(), mask, bits),
                }
                from = from.add(SUMS);
                to = to.wrapping_add(l.ldc);
                add = add.wrapping_add(short.add_stride);
            }
        }
    }
}

/// # Safety
/// The output has the elements of the mask.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
unsafe fn store(to: &To, at: usize, mask: u16, x: __m512) {
    // SAFETY: the caller's promise.
    unsafe {
        match *to {
            To::F32(c) if mask == 0xffff => _mm512_storeu_ps(c.add(at), x),
            To::F32(c) => _mm512_mask_storeu_ps(c.add(at), mask, x),
            To::Half(Halves::F16, c) => {
                let half = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                _mm256_mask_storeu_epi16(c.add(at).cast(), mask, half);
            }
            To::Half(Halves::Bf16, c) => {
                // Rounded to the nearest, ties to even; what is no number stays none.
                let bits = _mm512_castps_si512(x);
                let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
                let round = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
                let none = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
                let half = _mm512_srli_epi32::<16>(_mm512_mask_mov_epi32(round, none, quiet));
                _mm256_mask_storeu_epi16(c.add(at).cast(), mask, _mm512_cvtepi32_epi16(half));
            }
            To::U8(c, quantizer) => {
                let y = _mm512_fmadd_ps(x, _mm512_set1_ps(quantizer.inverse), _mm512_set1_ps(quantizer.shift));
                // A number that is none becomes the least.
                let y = _mm512_max_ps(y, _mm512_set1_ps(quantizer.low));
                let y = _mm512_min_ps(y, _mm512_set1_ps(quantizer.high));
                let step = _mm512_add_epi32(_mm512_cvtps_epi32(y), _mm512_set1_epi32(quantizer.zero));
                let bytes = _mm512_cvtepi32_epi8(step);
                match mask {
                    0xffff => _mm_storeu_si128(c.add(at).cast(), bytes),
                    _ => _mm_mask_storeu_epi8(c.add(at).cast(), mask, bytes),
                }
            }
        }
    }
}
