//! The checksum of zip archives: CRC-32 with the reflected polynomial 0xEDB88320.

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &b| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ b)])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::crc32(b""), 0);
    }
}
