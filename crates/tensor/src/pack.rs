//! Reads and writes the raw codes of sub-byte elements. The order differs by type: u4, i4, nf4, f4e2m1, u2 and i2 start at
//! the low end of a byte, u1 at the top bit, and u3/u6 split each element over a group of three bytes.

use crate::ElementType;

/// The raw code of element `index`, unsigned (i4 -1 is 15). Bytes that a cut-short u3/u6 group lacks read as zero.
/// Types of 8 bits give their byte; wider types panic.
pub fn get(ty: ElementType, bytes: &[u8], index: usize) -> u8 {
    match ty {
        ElementType::U1 => bytes[index / 8] >> (7 - index % 8) & 1,
        ElementType::U2 | ElementType::I2 => bytes[index / 4] >> (index % 4 * 2) & 3,
        ElementType::U3 => {
            let (low, low_shift, high, high_shift) = split_u3(index);
            byte_or_zero(bytes, low) >> low_shift & 3 | (byte_or_zero(bytes, high) >> high_shift & 1) << 2
        }
        ElementType::U6 => {
            let (low, low_shift, high, high_shift) = split_u6(index);
            byte_or_zero(bytes, low) >> low_shift & 15 | (byte_or_zero(bytes, high) >> high_shift & 3) << 4
        }
        _ if ty.bits() == 4 => bytes[index / 2] >> (index % 2 * 4) & 15,
        _ if ty.bits() == 8 => bytes[index],
        _ => panic!("pack::get serves types of at most 8 bits, found {ty}"),
    }
}

/// Writes the low bits of `code` as element `index` and leaves its neighbours alone.
pub fn set(ty: ElementType, bytes: &mut [u8], index: usize, code: u8) {
    match ty {
        ElementType::U1 => put(&mut bytes[index / 8], 7 - index % 8, 1, code),
        ElementType::U2 | ElementType::I2 => put(&mut bytes[index / 4], index % 4 * 2, 3, code),
        ElementType::U3 => {
            let (low, low_shift, high, high_shift) = split_u3(index);
            put(&mut bytes[low], low_shift, 3, code);
            put(&mut bytes[high], high_shift, 1, code >> 2);
        }
        ElementType::U6 => {
            let (low, low_shift, high, high_shift) = split_u6(index);
            put(&mut bytes[low], low_shift, 15, code);
            put(&mut bytes[high], high_shift, 3, code >> 4);
        }
        _ if ty.bits() == 4 => put(&mut bytes[index / 2], index % 2 * 4, 15, code),
        _ if ty.bits() == 8 => bytes[index] = code,
        _ => panic!("pack::set serves types of at most 8 bits, found {ty}"),
    }
}

/// The raw codes of the first `count` elements, one a byte.
pub fn unpack(ty: ElementType, bytes: &[u8], count: usize) -> Vec<u8> {
    (0..count).map(|i| get(ty, bytes, i)).collect()
}

/// Packs raw codes, one a byte, into whole storage units; the unused bits are zero.
pub fn pack(ty: ElementType, codes: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ty.byte_len(codes.len()).expect("packed codes are no larger than the codes")];
    for (i, &code) in codes.iter().enumerate() {
        set(ty, &mut bytes, i, code);
    }
    bytes
}

/// Byte and shift of the two low bits, byte and shift of the high bit.
fn split_u3(index: usize) -> (usize, usize, usize, usize) {
    let (group, position) = (index / 8 * 3, index % 8);
    (group + position / 4, 6 - position % 4 * 2, group + 2, 7 - position)
}

/// Byte and shift of the four low bits, byte and shift of the two high bits.
fn split_u6(index: usize) -> (usize, usize, usize, usize) {
    let (group, position) = (index / 4 * 3, index % 4);
    (group + position / 2, 4 - position % 2 * 4, group + 2, 6 - position * 2)
}

fn byte_or_zero(bytes: &[u8], index: usize) -> u8 {
    bytes.get(index).copied().unwrap_or(0)
}

fn put(byte: &mut u8, shift: usize, mask: u8, code: u8) {
    *byte = *byte & !(mask << shift) | (code & mask) << shift;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType::*;

    fn check(ty: ElementType, codes: &[u8], bytes: &[u8]) {
        assert_eq!(pack(ty, codes), bytes);
        assert_eq!(unpack(ty, bytes, codes.len()), codes);
    }

    #[test]
    fn u4_starts_in_the_low_nibble() {
        check(U4, &[1, 2, 3], &[0x21, 0x03]);
    }

    #[test]
    fn i4_is_twos_complement() {
        check(I4, &[0xf, 2, 8], &[0x2f, 0x08]);
    }

    #[test]
    fn u2_starts_in_the_low_bits() {
        check(U2, &[1, 2, 3, 0, 1], &[0x39, 0x01]);
    }

    #[test]
    fn u1_starts_in_the_top_bit() {
        check(U1, &[1, 0, 0, 0, 0, 0, 1, 1, 1], &[0x83, 0x80]);
    }

    #[test]
    fn u3_keeps_high_bits_in_the_third_byte() {
        check(U3, &[1, 2, 3, 4, 5, 6, 7, 0], &[0x6c, 0x6c, 0x1e]);
    }

    #[test]
    fn u6_keeps_high_bits_in_the_third_byte() {
        check(U6, &[1, 2, 33, 63], &[0x12, 0x1f, 0x0b]);
    }

    #[test]
    fn a_group_cut_short_reads_its_missing_bytes_as_zero() {
        assert_eq!(unpack(U3, &[0x6c], 2), [1, 2]);
    }

    #[test]
    fn set_leaves_the_neighbours_alone() {
        for ty in [U1, U2, U3, U4, U6] {
            let ones = (1u8 << ty.bits()) - 1;
            let mut bytes = pack(ty, &[ones; 9]);
            set(ty, &mut bytes, 4, 0);
            let mut expected = [ones; 9];
            expected[4] = 0;
            assert_eq!(unpack(ty, &bytes, 9), expected, "{ty}");
        }
    }
}
