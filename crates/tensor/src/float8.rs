//! Codes of the 8-bit and 4-bit float types to and from f32, bit for bit as OpenVINO rounds them.
//! f8e5m2 is rounded through f16 (twice), so a value just below a tie may round up; f8e4m3 has no infinity. The FNUZ forms,
//! which OpenVINO lacks, are rounded once, as in ONNX.

use half::f16;

use crate::ElementType;

/// The value of a raw code. Panics when `ty` is not a float of at most 8 bits.
pub fn decode(ty: ElementType, code: u8) -> f32 {
    match ty {
        ElementType::F8E4M3 => decode_f8e4m3(code),
        ElementType::F8E5M2 => decode_f8e5m2(code),
        ElementType::F8E8M0 => decode_f8e8m0(code),
        ElementType::F4E2M1 => decode_f4e2m1(code),
        ElementType::Nf4 => decode_nf4(code),
        ElementType::F8E4M3Fnuz => E4M3FNUZ.decode(code),
        ElementType::F8E5M2Fnuz => E5M2FNUZ.decode(code),
        _ => panic!("float8 serves f8, f4 and nf4, found {ty}"),
    }
}

/// The raw code of a value. Panics when `ty` is not a float of at most 8 bits.
pub fn encode(ty: ElementType, value: f32) -> u8 {
    match ty {
        ElementType::F8E4M3 => encode_f8e4m3(value),
        ElementType::F8E5M2 => encode_f8e5m2(value),
        ElementType::F8E8M0 => encode_f8e8m0(value),
        ElementType::F4E2M1 => encode_f4e2m1(value),
        ElementType::Nf4 => encode_nf4(value),
        ElementType::F8E4M3Fnuz => E4M3FNUZ.encode(value),
        ElementType::F8E5M2Fnuz => E5M2FNUZ.encode(value),
        _ => panic!("float8 serves f8, f4 and nf4, found {ty}"),
    }
}

/// The number of a code of F8E4M3.
pub fn decode_f8e4m3(code: u8) -> f32 {
    let (sign, exponent, mantissa) = (sign_of(code & 0x80), i32::from(code >> 3 & 15), f32::from(code & 7));
    match (exponent, code & 7) {
        (15, 7) => f32::NAN.copysign(sign),
        (0, _) => sign * mantissa * 2f32.powi(-9),
        _ => sign * (8.0 + mantissa) * 2f32.powi(exponent - 10),
    }
}

/// Rounds to nearest even; past 464 and for infinities the code is NaN, with the sign kept.
pub fn encode_f8e4m3(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let size = value.abs();
    if size.is_nan() {
        return sign | 0x7f;
    }
    // Below the smallest normal 2^-6 the step stays 2^-9.
    let exponent = ((size.to_bits() >> 23) as i32 - 127).max(-6);
    if exponent > 8 {
        return sign | 0x7f;
    }
    // Scaling by a power of two is exact here; a quotient of 16 carries into the exponent by itself.
    let steps = (size * 2f32.powi(3 - exponent)).round_ties_even() as u32;
    let code = (((exponent + 6) as u32) << 3) + steps;
    sign | code.min(0x7f) as u8
}

/// f8e5m2 is the top half of an f16.
pub fn decode_f8e5m2(code: u8) -> f32 {
    f16::from_bits(u16::from(code) << 8).to_f32()
}

/// The nearest code of F8E5M2.
pub fn encode_f8e5m2(value: f32) -> u8 {
    let half = f16::from_f32(value);
    if half.is_nan() {
        return (half.to_bits() >> 8) as u8 & 0x80 | 0x7e;
    }
    let bits = u32::from(half.to_bits());
    ((bits + 0x7f + (bits >> 8 & 1)) >> 8) as u8
}

/// 2^(code - 127); 255 is NaN.
pub fn decode_f8e8m0(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        0 => f32::from_bits(1 << 22),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

/// The nearest power of two, ties to the even code. Zero and negatives give 2^-127, infinity the largest power.
pub fn encode_f8e8m0(value: f32) -> u8 {
    if value.is_nan() {
        return 255;
    }
    if value <= 0.0 {
        return 0;
    }
    let (exponent, mantissa) = (value.to_bits() >> 23, value.to_bits() & 0x7f_ffff);
    let round_up = match exponent {
        // A subnormal counts from 2^-127, whose bit is the top one of the mantissa.
        0 => mantissa > 0x60_0000,
        _ => mantissa > 0x40_0000 || (mantissa == 0x40_0000 && exponent & 1 == 1),
    };
    (exponent + u32::from(round_up)).min(254) as u8
}

const F4E2M1_LEVELS: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The number of a code of F4E2M1.
pub fn decode_f4e2m1(code: u8) -> f32 {
    sign_of(code & 8) * F4E2M1_LEVELS[usize::from(code & 7)]
}

/// Rounds to nearest even and saturates at 6; NaN gives 6 too.
pub fn encode_f4e2m1(value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 8 } else { 0 };
    let size = value.abs();
    let code = (0..7u8).find(|&code| {
        let tie = (F4E2M1_LEVELS[usize::from(code)] + F4E2M1_LEVELS[usize::from(code) + 1]) / 2.0;
        size < tie || (size == tie && code & 1 == 0)
    });
    sign | code.unwrap_or(7)
}

/// The 16 levels of QLoRA's normal float.
pub const NF4_LEVELS: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// The border between each level and the next, as QLoRA gives them.
const NF4_BORDERS: [f32; 15] = [
    -0.848_096_4,
    -0.610_632_9,
    -0.459_995_27,
    -0.339_679_43,
    -0.234_607_4,
    -0.137_911_73,
    -0.045_525_018,
    0.039_790_15,
    0.120_255_25,
    0.203_521_25,
    0.292_013_77,
    0.389_312_53,
    0.501_663_4,
    0.642_786_9,
    0.861_478_4,
];

/// The number of a code of Nf4.
pub fn decode_nf4(code: u8) -> f32 {
    NF4_LEVELS[usize::from(code & 15)]
}

/// The nearest level, the lower one on a tie; NaN gives the lowest.
pub fn encode_nf4(value: f32) -> u8 {
    NF4_BORDERS.iter().filter(|&&border| value > border).count() as u8
}

/// A FNUZ form: finite numbers only, one zero, and NaN where the negative zero would be.
struct Fnuz {
    mantissa_bits: i32,
    bias: i32,
}

const E4M3FNUZ: Fnuz = Fnuz { mantissa_bits: 3, bias: 8 };
const E5M2FNUZ: Fnuz = Fnuz { mantissa_bits: 2, bias: 16 };
const FNUZ_NAN: u8 = 0x80;

impl Fnuz {
    fn decode(&self, code: u8) -> f32 {
        if code == FNUZ_NAN {
            return f32::NAN;
        }
        let size = i32::from(code & 0x7f);
        let (exponent, mantissa) = (size >> self.mantissa_bits, size & ((1 << self.mantissa_bits) - 1));
        let implicit = i32::from(exponent > 0) << self.mantissa_bits;
        let power = exponent.max(1) - self.bias - self.mantissa_bits;
        sign_of(code & 0x80) * (implicit + mantissa) as f32 * 2f32.powi(power)
    }

    /// Rounds to nearest even; what is too large by then, infinities and NaN give NaN.
    fn encode(&self, value: f32) -> u8 {
        let size = value.abs();
        // Below the smallest normal number the step stays the same.
        let exponent = ((size.to_bits() >> 23) as i32 - 127).max(1 - self.bias);
        if exponent > 15 {
            return FNUZ_NAN;
        }
        // Scaling by a power of two is exact here; a full mantissa carries into the exponent by itself.
        let steps = (size * 2f32.powi(self.mantissa_bits - exponent)).round_ties_even() as i32;
        match ((exponent + self.bias - 1) << self.mantissa_bits) + steps {
            0 => 0,
            code @ 1..=0x7f => code as u8 | if value.is_sign_negative() { 0x80 } else { 0 },
            _ => FNUZ_NAN,
        }
    }
}

fn sign_of(bit: u8) -> f32 {
    if bit == 0 { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    fn check(ty: ElementType, pairs: &[(f32, u8)]) {
        for &(value, code) in pairs {
            assert_eq!(encode(ty, value), code, "{ty} of {value:e}");
        }
    }

    #[test]
    fn every_code_survives_a_round_trip() {
        for ty in [F8E4M3, F8E5M2, F8E8M0, F4E2M1, Nf4, F8E4M3Fnuz, F8E5M2Fnuz] {
            for code in 0..1u32 << ty.bits() {
                let value = decode(ty, code as u8);
                if !value.is_nan() {
                    assert_eq!(encode(ty, value), code as u8, "{ty} code {code:#x}");
                }
            }
        }
    }

    // The expected codes below were printed by OpenVINO 2026.4.1.

    #[test]
    fn f8e4m3_rounds_to_even_and_overflows_to_nan() {
        check(F8E4M3, &[(1.0, 0x38), (448.0, 0x7e), (464.0, 0x7e), (465.0, 0x7f), (-1e9, 0xff), (f32::INFINITY, 0x7f)]);
        check(F8E4M3, &[(17.0 / 16.0, 0x38), (19.0 / 16.0, 0x3a), (240.0, 0x77), (-0.0, 0x80), (f32::NAN, 0x7f)]);
    }

    #[test]
    fn f8e4m3_keeps_subnormals() {
        let step = 2f32.powi(-9);
        check(F8E4M3, &[(step, 1), (step / 2.0, 0), (step * 0.505, 1), (step * 1.5, 2), (step * 8.0, 8), (0.0146, 7)]);
    }

    #[test]
    fn f8e5m2_overflows_to_infinity() {
        check(F8E5M2, &[(1.0, 0x3c), (2.0, 0x40), (57345.0, 0x7b), (61440.0, 0x7c), (-1e9, 0xfc), (f32::NAN, 0x7e)]);
    }

    #[test]
    fn f8e5m2_rounds_through_f16() {
        check(F8E5M2, &[(61439.0, 0x7c), (1.125, 0x3c), (1.375, 0x3e), (1.126, 0x3d)]);
    }

    #[test]
    fn f8e8m0_takes_the_nearest_power_of_two() {
        check(F8E8M0, &[(1.0, 0x7f), (4.0, 0x81), (1.4, 0x7f), (1.5, 0x80), (3.0, 0x80), (6.0, 0x82), (0.75, 0x7e)]);
    }

    #[test]
    fn f8e8m0_has_no_zero_sign_or_infinity() {
        check(F8E8M0, &[(0.0, 0), (-3.0, 0), (3e38, 0xfe), (f32::INFINITY, 0xfe), (f32::NAN, 0xff)]);
    }

    #[test]
    fn f4e2m1_rounds_to_even_and_saturates() {
        check(F4E2M1, &[(0.25, 0), (0.26, 1), (0.75, 2), (1.25, 2), (1.75, 4), (2.5, 4), (3.5, 6), (5.0, 6), (5.1, 7)]);
        check(
            F4E2M1,
            &[(100.0, 7), (f32::NAN, 7), (f32::NEG_INFINITY, 15), (-0.1, 8), (-0.75, 10), (0.5, 1), (-1.0, 10)],
        );
    }

    // The expected codes of the FNUZ forms were printed by ml_dtypes 0.5, which ONNX's reference uses.

    #[test]
    fn fnuz_forms_overflow_to_nan() {
        let inf = f32::INFINITY;
        check(F8E4M3Fnuz, &[(1.0, 0x40), (240.0, 0x7f), (247.9, 0x7f), (248.0, 0x80), (-1e9, 0x80), (inf, 0x80)]);
        check(F8E5M2Fnuz, &[(1.0, 0x40), (57344.0, 0x7f), (61439.0, 0x7f), (61440.0, 0x80), (-inf, 0x80)]);
        check(F8E4M3Fnuz, &[(f32::NAN, 0x80), (-f32::NAN, 0x80), (100.0, 116), (-100.0, 244)]);
        check(F8E5M2Fnuz, &[(f32::NAN, 0x80), (-f32::NAN, 0x80), (100.0, 90), (-100.0, 218)]);
    }

    #[test]
    fn fnuz_forms_have_one_zero_and_subnormals() {
        check(F8E4M3Fnuz, &[(0.0, 0), (-0.0, 0), (0.0009, 1), (-0.0001, 0), (2f32.powi(-10), 1), (2f32.powi(-11), 0)]);
        check(F8E5M2Fnuz, &[(-0.0, 0), (0.0009, 23), (-0.0001, 139), (-2f32.powi(-17), 0x81), (2f32.powi(-18), 0)]);
    }

    #[test]
    fn nf4_takes_the_nearest_level() {
        check(
            Nf4,
            &[
                (0.0, 7),
                (1.0, 15),
                (-1.0, 0),
                (f32::INFINITY, 15),
                (-5.0, 0),
                (0.039_790_15, 7),
                (0.5, 12),
                (-0.5, 2),
                (f32::NAN, 0),
            ],
        );
    }
}
