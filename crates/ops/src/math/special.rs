//! The error function and its relatives to the accuracy of f64. Rust's standard library has none of them, and the usual
//! five-term formula is good to seven digits only, which shows in f32 already.
//!
//! `erf` and `erfc` use the rational Chebyshev fits of W. J. Cody (Math. Comp. 23, 1969), one per region of the axis.

use std::f64::consts::PI;

/// `erf(x) / x` as a ratio in `x * x`, for `|x| <= 0.46875`; the first number is the leading one of the numerator.
const NEAR: (f64, [f64; 4], [f64; 4]) = (
    1.857_777_061_846_031_5e-1,
    [3.161_123_743_870_565_5, 1.138_641_541_510_501_6e2, 3.774_852_376_853_02e2, 3.209_377_589_138_469_4e3],
    [2.360_129_095_234_412_2e1, 2.440_246_379_344_441_7e2, 1.282_616_526_077_372_3e3, 2.844_236_833_439_171e3],
);

/// `exp(x * x) * erfc(x)` as a ratio in `x`, for `0.46875 <= x <= 4`.
const MIDDLE: (f64, [f64; 8], [f64; 8]) = (
    2.153_115_354_744_038_3e-8,
    [
        5.641_884_969_886_701e-1,
        8.883_149_794_388_377,
        6.611_919_063_714_163e1,
        2.986_351_381_974_001e2,
        8.819_522_212_417_69e2,
        1.712_047_612_634_070_7e3,
        2.051_078_377_826_071_6e3,
        1.230_339_354_797_997_2e3,
    ],
    [
        1.574_492_611_070_983_5e1,
        1.176_939_508_913_125e2,
        5.371_811_018_620_099e2,
        1.621_389_574_566_690_3e3,
        3.290_799_235_733_459_7e3,
        4.362_619_090_143_247e3,
        3.439_367_674_143_721_6e3,
        1.230_339_354_803_749_5e3,
    ],
);

/// What `x * exp(x * x) * erfc(x)` lacks from `1 / sqrt(pi)`, divided by `1 / (x * x)`, as a ratio in that; for `x >= 4`.
const FAR: (f64, [f64; 5], [f64; 5]) = (
    1.631_538_713_730_209_7e-2,
    [
        3.053_266_349_612_323_6e-1,
        3.603_448_999_498_044_5e-1,
        1.257_817_261_112_292_6e-1,
        1.608_378_514_874_227_5e-2,
        6.587_491_615_298_378e-4,
    ],
    [
        2.568_520_192_289_822,
        1.872_952_849_923_460_4,
        5.279_051_029_514_285e-1,
        6.051_834_131_244_132e-2,
        2.335_204_976_268_691_8e-3,
    ],
);

fn ratio<const N: usize>(x: f64, (lead, above, below): &(f64, [f64; N], [f64; N])) -> f64 {
    let (mut p, mut q) = (lead * x, x);
    for i in 0..N - 1 {
        p = (p + above[i]) * x;
        q = (q + below[i]) * x;
    }
    (p + above[N - 1]) / (q + below[N - 1])
}

/// The Gauss error function.
pub(crate) fn erf(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() {
        x
    } else if size <= 0.46875 {
        x * ratio(x * x, &NEAR)
    } else {
        (1.0 - erfc_right(size)).copysign(x)
    }
}

/// `1 - erf(x)` for `x >= 0.46875`, without the cancellation.
fn erfc_right(x: f64) -> f64 {
    if x > 27.0 {
        return 0.0;
    }
    let scaled = if x <= 4.0 {
        ratio(x, &MIDDLE)
    } else {
        let inverse = 1.0 / (x * x);
        (1.0 / PI.sqrt() - inverse * ratio(inverse, &FAR)) / x
    };
    // The square of sixteenths is exact, so the rounding of x * x does not reach the exponent.
    let coarse = (x * 16.0).trunc() / 16.0;
    let rest = (x - coarse) * (x + coarse);
    (-coarse * coarse).exp() * (-rest).exp() * scaled
}

/// The inverse of [`erf`]: an elementary guess good to three digits, then two steps of Halley's method.
pub(crate) fn erf_inv(x: f64) -> f64 {
    let size = x.abs();
    if size.is_nan() || size > 1.0 {
        return f64::NAN;
    }
    if size == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    if size < 1e-9 {
        return x * PI.sqrt() / 2.0;
    }
    const A: f64 = 0.147;
    let log = ((1.0 - size) * (1.0 + size)).ln();
    let half = 2.0 / (PI * A) + log / 2.0;
    let mut y = ((half * half - log / A).sqrt() - half).sqrt();
    for _ in 0..2 {
        // Near 1 the complement keeps the digits that 1 - erf would lose.
        let miss = if y > 0.46875 { (1.0 - size) - erfc_right(y) } else { erf(y) - size };
        let step = miss / (2.0 / PI.sqrt() * (-y * y).exp());
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 4e-16 * expected.abs(), "{found:e} instead of {expected:e}");
    }

    #[test]
    fn erf_is_exact_in_all_regions() {
        check(erf(0.0), 0.0);
        check(erf(1e-10), 1.128_379_167_095_512_6e-10);
        check(erf(0.3), 0.328_626_759_459_127_45);
        check(erf(0.5), 0.520_499_877_813_046_5);
        check(erf(1.0), 0.842_700_792_949_714_9);
        check(erf(-1.5), -0.966_105_146_475_310_6);
        check(erf(3.0), 0.999_977_909_503_001_4);
        check(erf(5.0), 0.999_999_999_998_462_5);
        check(erf(1e300), 1.0);
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(f64::NEG_INFINITY), -1.0);
    }

    #[test]
    fn the_complement_keeps_its_digits() {
        assert!((erfc_right(2.0) / 4.677_734_981_047_266e-3 - 1.0).abs() < 1e-15);
        assert!((erfc_right(6.0) / 2.151_973_671_249_891_3e-17 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn erf_inv_undoes_erf() {
        for x in [1e-12, 1e-4, 0.1, 0.5, 0.9, 0.999, 0.999_999_999] {
            assert!((erf(erf_inv(x)) - x).abs() <= 3e-16, "{x}");
        }
        check(erf_inv(0.5), 0.476_936_276_204_469_9);
        check(erf_inv(-0.9), -1.163_087_153_676_674_3);
        assert_eq!(erf_inv(-1.0), f64::NEG_INFINITY);
        assert!(erf_inv(1.5).is_nan());
    }
}
