//! Blocks compressed with snappy. A block grows at most 64-fold, so its size is checked before anything is allocated.

/// The bytes behind a compressed block; `None` when it is broken.
pub(super) fn decompress(block: &[u8]) -> Option<Vec<u8>> {
    let (size, mut at) = crate::recognise::varint(block)?;
    let size = usize::try_from(size).ok().filter(|n| *n <= block.len().saturating_mul(64))?;
    let mut out = Vec::with_capacity(size);
    while at < block.len() {
        let tag = usize::from(block[at]);
        at += 1;
        let number = |at: usize, n: usize| -> Option<usize> {
            let bytes = block.get(at..at + n)?;
            Some(bytes.iter().rev().fold(0, |v, b| v << 8 | usize::from(*b)))
        };
        let (length, offset) = match tag & 3 {
            0 => {
                let mut n = tag >> 2;
                if n >= 60 {
                    let extra = n - 59;
                    n = number(at, extra)?;
                    at += extra;
                }
                let n = n.checked_add(1)?;
                out.extend_from_slice(block.get(at..at.checked_add(n)?)?);
                at += n;
                if out.len() > size {
                    return None;
                }
                continue;
            }
            1 => {
                let offset = (tag >> 5) << 8 | number(at, 1)?;
                at += 1;
                ((tag >> 2 & 7) + 4, offset)
            }
            kind => {
                let n = if kind == 2 { 2 } else { 4 };
                let offset = number(at, n)?;
                at += n;
                ((tag >> 2) + 1, offset)
            }
        };
        if offset == 0 || offset > out.len() || out.len() + length > size {
            return None;
        }
        // What is copied may overlap with what it makes.
        for _ in 0..length {
            out.push(out[out.len() - offset]);
        }
    }
    (out.len() == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_joined() {
        // "abcd", then six bytes from four back.
        let block = [10, 3 << 2, b'a', b'b', b'c', b'd', 1 | 2 << 2, 4];
        assert_eq!(decompress(&block).unwrap(), b"abcdabcdab");
    }

    #[test]
    fn broken_blocks_are_refused() {
        assert!(decompress(&[255, 255, 255, 255, 15, 0, 1]).is_none(), "too large");
        assert!(decompress(&[4, 1, 9]).is_none(), "copies from before the start");
        assert!(decompress(&[4, 3 << 2, b'a']).is_none(), "ends early");
        assert!(decompress(&[]).is_none());
    }
}
