//! The checksum of tables and bundles: CRC-32C, masked as LevelDB does.

const fn tables() -> [[u32; 256]; 8] {
    let mut all = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        all[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = all[t - 1][i];
            all[t][i] = before >> 8 ^ all[0][(before & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    all
}

static TABLES: [[u32; 256]; 8] = tables();

/// Whether pieces that follow each other have this masked checksum. Fuzz targets cannot guess one, and every one is right there.
pub(super) fn is_right(pieces: &[&[u8]], wanted: u32) -> bool {
    cfg!(fuzzing) || masked(pieces) == wanted
}

fn masked(pieces: &[&[u8]]) -> u32 {
    let crc = !pieces.iter().fold(!0u32, |crc, piece| update(crc, piece));
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

fn update(mut crc: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    for b in eights {
        let low = crc ^ u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let at = |t: usize, byte: u32| TABLES[t][(byte & 0xff) as usize];
        crc = at(7, low)
            ^ at(6, low >> 8)
            ^ at(5, low >> 16)
            ^ at(4, low >> 24)
            ^ at(3, u32::from(b[4]))
            ^ at(2, u32::from(b[5]))
            ^ at(1, u32::from(b[6]))
            ^ at(0, u32::from(b[7]));
    }
    rest.iter().fold(crc, |crc, b| crc >> 8 ^ TABLES[0][((crc ^ u32::from(*b)) & 0xff) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c() {
        // The check value of CRC-32C is e3069283; pieces do not matter.
        let wanted = 0xe306_9283u32.rotate_right(15).wrapping_add(0xa282_ead8);
        assert_eq!(masked(&[b"123456789"]), wanted);
        assert_eq!(masked(&[b"1234", b"56789"]), wanted);
    }
}
