//! The functions themselves, one vector at a time. Polynomials are minimax fits of our own; `z = exp(-|x|)` never overflows,
//! so everything sigmoid-like is made of it and of denominators between 1 and 5.

use crate::simd::Simd;

/// `(exp(r) - 1 - r) / r^2` for `|r| <= ln(2) / 2`, relative to `exp(r) - 1` to 2^-26.
const EXP: [f32; 5] = [0.001_394_655_3, 0.008_366_644, 0.041_666_28, 0.166_665_42, 0.5];
/// `2^f` for `|f| <= 1/2`, relative to 2^-18.5.
const EXP2: [f32; 5] = [0.009_570_102, 0.055_917_86, 0.240_247_44, 0.693_121_8, 0.999_999_3];
/// `(ln(1 + f) - f + f^2 / 2) / f^3` for `|f| <= 1/3`.
const LOG: [f32; 8] =
    [-0.131_917, 0.139_624, -0.121_151_18, 0.140_109_3, -0.166_854_66, 0.200_100_44, -0.249_996_89, 0.333_332_24];
/// `(atanh(s) / s - 1) / s^2` in `s^2` up to 1/9.
const ATANH: [f32; 4] = [0.140_122_13, 0.139_995_74, 0.200_108_5, 0.333_332_06];
/// The same up to 1/25, closer.
const ATANH_NEAR: [f32; 4] = [0.120_492_43, 0.142_535_66, 0.200_004_31, 0.333_333_3];
/// `(sin(x) / x - 1) / x^2` and `(cos(x) - 1 + x^2 / 2) / x^4` in `x^2`, for `|x| <= pi / 4`.
const SIN: [f32; 3] = [-0.000_195_169_78, 0.008_332_176, -0.166_666_55];
const COS: [f32; 3] = [2.443_809_2e-5, -0.001_388_736_4, 0.041_666_646];

const LN2: f32 = std::f32::consts::LN_2;
/// What `LN2` lacks.
const LN2_REST: f32 = -1.904_654_3e-9;

/// Added to a number from -127 to 127 it rounds it to a whole `n`, and its lowest nine bits are those of `n + 127`: shifted to the
/// exponent they are `2^n`, and 0 for -127. So no number becomes smaller than the least normal one on the way to 0: instructions
/// that scale by a power of two take hundreds of cycles then on some processors, even where such numbers are flushed.
const SHIFT: f32 = 12_582_912.0 + 127.0;

/// `exp(x) = 2^n * (1 + q)`: gives `(2^n, q)`, for `x` from -88.1 to 88.
#[inline(always)]
fn exp_parts<S: Simd>(x: S) -> (S, S) {
    let shifted = x.fma(S::splat(std::f32::consts::LOG2_E), S::splat(SHIFT));
    let r = exp_left(x, shifted - S::splat(SHIFT));
    (power_of_shifted(shifted), exp_rest(r))
}

/// `2^n` of the sum of [`SHIFT`] and a number.
#[inline(always)]
fn power_of_shifted<S: Simd>(shifted: S) -> S {
    S::from_bits(S::int_shl::<23>(shifted.to_bits()))
}

/// `x - n * ln(2)`.
#[inline(always)]
fn exp_left<S: Simd>(x: S, n: S) -> S {
    n.fnma(S::splat(LN2_REST), n.fnma(S::splat(LN2), x))
}

/// `exp(r) - 1` for `r` near 0.
#[inline(always)]
fn exp_rest<S: Simd>(r: S) -> S {
    (r * r).fma(r.poly(EXP), r)
}

/// Error at most 1.5 ulp; overflow gives infinity, underflow passes through the denormals to 0.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: S) -> S {
    let x = S::splat(-104.0).max(S::splat(89.0).min(x));
    let n = (x * S::splat(std::f32::consts::LOG2_E)).round_even();
    (exp_rest(exp_left(x, n)) + S::splat(1.0)).ldexp(n)
}

/// `exp(x)` for `x <= 0`, NaN included.
#[inline(always)]
fn exp_of_negative<S: Simd>(x: S) -> S {
    let x = S::splat(-104.0).max(x);
    let n = (x * S::splat(std::f32::consts::LOG2_E)).round_even();
    (exp_rest(exp_left(x, n)) + S::splat(1.0)).ldexp(n)
}

/// The same with 0 below the normal numbers, for what is far below often, as the scores of hidden keys are.
#[inline(always)]
pub(crate) fn exp_or_zero<S: Simd>(x: S) -> S {
    let (power, q) = exp_parts(S::splat(-88.1).max(x));
    (q + S::splat(1.0)) * power
}

/// `2^x` for `x <= 0`, NaN included, for results that are rounded to bf16: the error is at most 2^-17 of it. 0 below the normal
/// numbers.
#[inline(always)]
pub(crate) fn exp2_of_negative_roughly<S: Simd>(x: S) -> S {
    let x = S::splat(-127.0).max(x);
    let shifted = x + S::splat(SHIFT);
    (x - (shifted - S::splat(SHIFT))).poly(EXP2) * power_of_shifted(shifted)
}

/// `exp(x)` where arguments above 44 count as 44, so that the product of two results is finite; 0 below the normal numbers.
#[inline(always)]
pub(crate) fn exp_capped<S: Simd>(x: S) -> S {
    let (power, q) = exp_parts(S::splat(-88.1).max(S::splat(44.0).min(x)));
    (q + S::splat(1.0)) * power
}

/// `exp(x) - 1`, also near 0, where arguments above 44 count as 44.
#[inline(always)]
pub(crate) fn expm1_capped<S: Simd>(x: S) -> S {
    expm1(S::splat(44.0).min(x))
}

/// `exp(x) - 1` for `x <= 44`, NaN included; error at most 2 ulp also near 0.
#[inline(always)]
pub(crate) fn expm1<S: Simd>(x: S) -> S {
    let (power, q) = exp_parts(S::splat(-80.0).max(x));
    power.fma(q, power - S::splat(1.0))
}

/// Error at most 2.5 ulp.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(x: S) -> S {
    let one = S::splat(1.0);
    let z = exp_of_negative(-x.abs());
    let y = (one + z).recip();
    y * S::select(x.lt(S::splat(0.0)), z, one)
}

/// Error at most 3.5 ulp, also near 0.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(x: S) -> S {
    let t = expm1(S::splat(-2.0) * x.abs());
    let y = -t * (S::splat(2.0) + t).recip();
    y.abs().or(x.sign_bit())
}

/// `x * sigmoid(beta * x)`; error at most 4 ulp, more where the result is below 1e-36.
#[inline(always)]
pub(crate) fn swish<S: Simd>(x: S, beta: S) -> S {
    x * sigmoid(beta * x)
}

/// `ln(1 + z)` for `0 <= z <= 1`, relative.
#[inline(always)]
fn ln_1p<S: Simd>(z: S) -> S {
    let s = z * (S::splat(2.0) + z).recip();
    let square = s * s;
    let twice = s + s;
    (twice * square).fma(square.poly(ATANH), twice)
}

/// Error at most 4 ulp.
#[inline(always)]
pub(crate) fn softplus<S: Simd>(x: S) -> S {
    x.max(S::splat(0.0)) + ln_1p(exp_of_negative(-x.abs()))
}

/// Error at most 6 ulp, more where the result is below 1e-36. The tangent of the logarithm is a ratio of squares of `exp(x)`.
#[inline(always)]
pub(crate) fn mish<S: Simd>(x: S) -> S {
    let (one, two) = (S::splat(1.0), S::splat(2.0));
    let z = exp_of_negative(-x.abs());
    let left = x.lt(S::splat(0.0));
    let above = S::select(left, z * (z + two), z.fma(two, one));
    let below = above + S::select(left, two, two * z * z);
    x * above * below.recip()
}

/// Error at most 1.5e-7 times `|x|`.
#[inline(always)]
pub(crate) fn gelu_erf<S: Simd>(x: S) -> S {
    let half = x * S::splat(0.5);
    half.fma(erf(x * S::splat(std::f32::consts::FRAC_1_SQRT_2)), half)
}

/// Error at most 5 ulp, on the left 1e-7 times `|x|`.
#[inline(always)]
pub(crate) fn gelu_tanh<S: Simd>(x: S) -> S {
    // (1 + tanh(u)) / 2 is sigmoid(2 u).
    const A: f32 = 1.595_769;
    const B: f32 = 0.071_354_814;
    let u = x * (x * x).fma(S::splat(B), S::splat(A));
    x * sigmoid(u)
}

#[inline(always)]
pub(crate) fn elu<S: Simd>(x: S, alpha: S) -> S {
    let zero = S::splat(0.0);
    S::select(x.lt(zero), alpha * expm1(zero.min(x)), x)
}

/// Error at most 5 ulp.
#[inline(always)]
pub(crate) fn erf<S: Simd>(x: S) -> S {
    let bound = S::splat(ERF_ONE);
    let a = bound.min(x.abs());
    let t = a * a;
    let y = a * t.poly(ERF_ABOVE) * t.poly(ERF_BELOW).recip();
    // Rounding may step over the limit.
    S::splat(1.0).min(y).or(x.sign_bit())
}

/// From here on the error function is 1 in f32.
const ERF_ONE: f32 = 3.93;
/// `erf(x) / x` as a ratio in `x^2`, to 2e-8.
const ERF_ABOVE: [f32; 6] =
    [2.042_016_6e-6, 2.848_029_5e-4, 3.779_353_3e-3, 0.052_789_487, 0.190_777_85, std::f32::consts::FRAC_2_SQRT_PI];
const ERF_BELOW: [f32; 6] = [3.800_426e-5, 1.165_151_1e-3, 0.014_996_921, 0.114_255_05, 0.502_405_17, 1.0];

/// `x = m * 2^e` with `2/3 <= m < 4/3`, for positive finite `x`.
#[inline(always)]
fn split<S: Simd>(x: S) -> (S, S) {
    let tiny = x.lt(S::splat(f32::MIN_POSITIVE));
    let bits = S::select(tiny, x * S::splat(8_388_608.0), x).to_bits();
    let e = S::int_shr::<23>(S::int_sub(bits, S::int(0x3f2a_aaab)));
    let m = S::from_bits(S::int_sub(bits, S::int_shl::<23>(e)));
    (m, S::from_int(e) - S::select(tiny, S::splat(23.0), S::splat(0.0)))
}

/// Error at most 2 ulp; 0 gives minus infinity, negatives NaN.
#[inline(always)]
pub(crate) fn log<S: Simd>(x: S) -> S {
    let (m, e) = split(x);
    let f = m - S::splat(1.0);
    let square = f * f;
    // The first part of ln(2) has few bits, so its product with e is exact.
    let rest = (square * f).fma(f.poly(LOG), e * S::splat(-2.121_944_4e-4));
    let y = e.fma(S::splat(0.693_359_4), f + square.fma(S::splat(-0.5), rest));
    let infinity = S::splat(f32::INFINITY);
    let usual = S::mask_and(S::splat(0.0).lt(x), x.lt(infinity));
    // Of the rest 0 gives minus infinity, infinity and NaN themselves, and negatives the NaN of their root.
    let odd = S::select(x.equal(S::splat(0.0)), -infinity, x.sqrt());
    S::select(usual, y, odd)
}

/// Error at most 3 ulp.
#[inline(always)]
pub(crate) fn pow<S: Simd>(base: S, exponent: S) -> S {
    let (zero, one) = (S::splat(0.0), S::splat(1.0));
    let (x, infinity) = (base.abs(), S::splat(f32::INFINITY));
    let usual = S::mask_and(S::mask_and(zero.lt(x), x.lt(infinity)), exponent.abs().lt(infinity));
    let power = pow_of_positive(S::select(usual, x, one), S::select(usual, exponent, one));
    // A negative base is fine with a whole exponent: the odd ones keep the sign.
    let whole = exponent.trunc().equal(exponent);
    let half = exponent * S::splat(0.5);
    let even = half.trunc().equal(half);
    let signed = S::select(even, power, power.or(base.sign_bit()));
    let negative = S::select(whole, signed, S::splat(f32::NAN));
    let y = S::select(base.lt(zero), negative, power);
    // The mask has no negation on all levels: a lane that is not usual is found by its marker.
    let unusual = zero.equal(S::select(usual, one, zero));
    if !S::any(unusual) {
        return y;
    }
    let exact = by_lane2(base, exponent, |a, b| f64::from(a).powf(f64::from(b)) as f32);
    S::select(unusual, exact, y)
}

#[inline(always)]
fn pow_of_positive<S: Simd>(x: S, exponent: S) -> S {
    let (one, two) = (S::splat(1.0), S::splat(2.0));
    let (m, e) = split(x);
    // ln(m) = 2 atanh(s), s = (m - 1) / (m + 1), with what the division and the sum round off.
    let f = m - one;
    let below = two + f;
    let inverse = one / below;
    let s = f * inverse;
    let below_rest = f - (below - two);
    let s_rest = s.fnma(below_rest, s.fnma(below, f)) * inverse;
    let square = s * s;
    let tail = two * (s * square).fma(square.poly(ATANH_NEAR), s_rest);
    // e * ln(2) with its first part exact, then the sum in two parts.
    let whole = e * S::splat(0.693_359_4);
    let twice = two * s;
    let high = whole + twice;
    let part = high - whole;
    let low = (whole - (high - part)) + (twice - part) + e.fma(S::splat(-2.121_944_4e-4), tail);
    let log = high + low;
    let log_rest = (high - log) + low;
    let product = exponent * log;
    let product_rest = exponent.fma(log_rest, log.fma(exponent, -product));
    let held = S::splat(-104.0).max(S::splat(89.0).min(product));
    let n = (held * S::splat(std::f32::consts::LOG2_E)).round_even();
    // Where the product was cut, it may have been infinite, and there is no rest of it.
    let rest = S::select(held.equal(product), product_rest, S::splat(0.0));
    (exp_rest(exp_left(held, n) + rest) + one).ldexp(n)
}

/// `(x - n * pi / 2, n)`, good for `|x|` up to [`FAR`].
#[inline(always)]
fn quarter_turns<S: Simd>(x: S) -> (S, S::Int) {
    let n = (x * S::splat(std::f32::consts::FRAC_2_PI)).round_even();
    let r = n.fnma(S::splat(1.570_796_4), x);
    let r = n.fnma(S::splat(-4.371_139e-8), r);
    (n.fnma(S::splat(-1.715_112_5e-15), r), n.to_int())
}

/// Beyond it a turn is reduced by the library.
const FAR: f32 = 30_000.0;

#[inline(always)]
fn sin_cos<S: Simd>(x: S, quarters: i32) -> S {
    let (r, n) = quarter_turns(x);
    let n = S::int_add(n, S::int(quarters));
    let square = r * r;
    let sine = (square * r).fma(square.poly(SIN), r);
    let cosine = (square * square).fma(square.poly(COS), square.fma(S::splat(-0.5), S::splat(1.0)));
    let odd = S::int_equal(S::int_and(n, S::int(1)), S::int(1));
    // Bit 1 of the quarter is the sign.
    let sign = S::from_bits(S::int_shl::<30>(S::int_and(n, S::int(2))));
    S::select(odd, cosine, sine).xor(sign)
}

/// Error at most 2 ulp.
#[inline(always)]
pub(crate) fn sin<S: Simd>(x: S) -> S {
    let y = S::select(x.equal(S::splat(0.0)), x, sin_cos(x, 0));
    far_by_lane(x, y, |x| f64::from(x).sin() as f32)
}

/// Error at most 2 ulp.
#[inline(always)]
pub(crate) fn cos<S: Simd>(x: S) -> S {
    far_by_lane(x, sin_cos(x, 1), |x| f64::from(x).cos() as f32)
}

/// `y`, and `f(x)` where `x` is too large for [`quarter_turns`].
#[inline(always)]
fn far_by_lane<S: Simd>(x: S, y: S, f: impl Fn(f32) -> f32) -> S {
    let far = S::splat(FAR).lt(x.abs());
    if S::any(far) { S::select(far, by_lane(x, f), y) } else { y }
}

/// `f` of each lane.
#[inline(always)]
pub(crate) fn by_lane<S: Simd>(x: S, f: impl Fn(f32) -> f32) -> S {
    let mut lanes = [0.0f32; 16];
    // SAFETY: no level has more than 16 lanes.
    unsafe { x.store(lanes.as_mut_ptr()) };
    for lane in &mut lanes[..S::N] {
        *lane = f(*lane);
    }
    // SAFETY: as above.
    unsafe { S::load(lanes.as_ptr()) }
}

#[inline(always)]
pub(crate) fn by_lane2<S: Simd>(x: S, y: S, f: impl Fn(f32, f32) -> f32) -> S {
    let (mut a, mut b) = ([0.0f32; 16], [0.0f32; 16]);
    // SAFETY: no level has more than 16 lanes.
    unsafe {
        x.store(a.as_mut_ptr());
        y.store(b.as_mut_ptr());
    }
    for i in 0..S::N {
        a[i] = f(a[i], b[i]);
    }
    // SAFETY: as above.
    unsafe { S::load(a.as_ptr()) }
}
