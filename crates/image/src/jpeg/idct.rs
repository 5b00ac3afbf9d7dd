//! The accurate integer transform of libjpeg ("islow"): the factorization of Loeffler, Ligtenberg and Moschytz with
//! constants of 13 bits, first over columns, with 2 bits kept, then over rows.

use super::QuantTable;
use std::num::Wrapping;

const CONST_BITS: usize = 13;
const KEPT_BITS: usize = 2;

type N = Wrapping<i32>;

/// Dequantizes and transforms a block into samples of 0 to 255.
pub(super) fn block(coefficients: &[i16; 64], quant: &QuantTable, out: &mut [u8], stride: usize) {
    let mut middle = [Wrapping(0); 64];
    for x in 0..8 {
        let column = std::array::from_fn(|y| {
            let at = y * 8 + x;
            Wrapping(i32::from(coefficients[at])) * Wrapping(i32::from(quant[at]))
        });
        for (y, value) in transform(column, CONST_BITS - KEPT_BITS).into_iter().enumerate() {
            middle[y * 8 + x] = value;
        }
    }
    for (row, out) in middle.as_chunks::<8>().0.iter().zip(out.chunks_mut(stride)) {
        let row = transform(*row, CONST_BITS + KEPT_BITS + 3);
        for (value, out) in row.into_iter().zip(out) {
            *out = (value.0.saturating_add(128)).clamp(0, 255) as u8;
        }
    }
}

fn transform(d: [N; 8], shift: usize) -> [N; 8] {
    let c = Wrapping::<i32>;
    // The even part.
    let z1 = (d[2] + d[6]) * c(4433);
    let (t2, t3) = (z1 - d[6] * c(15137), z1 + d[2] * c(6270));
    let (t0, t1) = ((d[0] + d[4]) << CONST_BITS, (d[0] - d[4]) << CONST_BITS);
    let even = [t0 + t3, t1 + t2, t1 - t2, t0 - t3];
    // The odd part.
    let z5 = (d[7] + d[3] + d[5] + d[1]) * c(9633);
    let z1 = (d[7] + d[1]) * c(-7373);
    let z2 = (d[5] + d[3]) * c(-20995);
    let z3 = (d[7] + d[3]) * c(-16069) + z5;
    let z4 = (d[5] + d[1]) * c(-3196) + z5;
    let odd =
        [d[1] * c(12299) + z1 + z4, d[3] * c(25172) + z2 + z3, d[5] * c(16819) + z2 + z4, d[7] * c(2446) + z1 + z3];
    let half = c(1 << (shift - 1));
    std::array::from_fn(|i| match i {
        0..4 => (even[i] + odd[i] + half) >> shift,
        _ => (even[7 - i] - odd[7 - i] + half) >> shift,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_one_level_is_flat() {
        let mut coefficients = [0; 64];
        coefficients[0] = -100;
        let mut out = [0; 64];
        block(&coefficients, &[8; 64], &mut out, 8);
        assert_eq!(out, [28; 64]);
    }

    #[test]
    fn samples_stay_within_a_byte() {
        for (level, sample) in [(i16::MAX, 255), (i16::MIN, 0)] {
            let mut coefficients = [0; 64];
            coefficients[0] = level;
            let mut out = [7; 64];
            block(&coefficients, &[1; 64], &mut out, 8);
            assert_eq!(out, [sample; 64]);
        }
    }
}
