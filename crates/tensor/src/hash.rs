//! A 128-bit hash that does not depend on how its input is cut into pieces. It tells contents apart and finds damage; it
//! is no defence against somebody who wants two contents to collide.

/// MurmurHash3, the variant of 128 bits for machines of 64, without a seed.
#[derive(Clone, Debug, Default)]
pub struct Hash128 {
    a: u64,
    b: u64,
    len: u64,
    /// What did not fill a block yet.
    rest: [u8; BLOCK],
    n_rest: usize,
}

const BLOCK: usize = 16;
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

impl Hash128 {
    /// Goes on with these bytes.
    pub fn bytes(&mut self, mut bytes: &[u8]) {
        self.len = self.len.wrapping_add(bytes.len() as u64);
        if self.n_rest > 0 {
            let n = bytes.len().min(BLOCK - self.n_rest);
            self.rest[self.n_rest..self.n_rest + n].copy_from_slice(&bytes[..n]);
            self.n_rest += n;
            bytes = &bytes[n..];
            if self.n_rest < BLOCK {
                return;
            }
            let block = self.rest;
            self.block(&block);
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        blocks.iter().for_each(|block| self.block(block));
        self.rest[..rest.len()].copy_from_slice(rest);
        self.n_rest = rest.len();
    }

    /// A text and where it ends.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// A number, as eight bytes.
    pub fn number(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    /// The hash of all that was given.
    pub fn finish(mut self) -> u128 {
        self.rest[self.n_rest..].fill(0);
        let (low, high) = halves(&self.rest);
        // Lanes without bytes stay as they are, and zeros leave them so.
        self.b ^= high.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        self.a ^= low.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        let (mut a, mut b) = (self.a ^ self.len, self.b ^ self.len);
        a = a.wrapping_add(b);
        b = b.wrapping_add(a);
        (a, b) = (avalanche(a), avalanche(b));
        a = a.wrapping_add(b);
        b = b.wrapping_add(a);
        u128::from(a) << 64 | u128::from(b)
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let (low, high) = halves(block);
        self.a ^= low.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        self.a = self.a.rotate_left(27).wrapping_add(self.b).wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.b ^= high.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        self.b = self.b.rotate_left(31).wrapping_add(self.a).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
}

fn halves(block: &[u8; BLOCK]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn avalanche(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> u128 {
        let mut h = Hash128::default();
        h.bytes(text.as_bytes());
        h.finish()
    }

    #[test]
    fn published_values() {
        assert_eq!(hash(""), 0);
        assert_eq!(hash("The quick brown fox jumps over the lazy dog"), 0xe34b_bc7b_bc07_1b6c_7a43_3ca9_c49a_9347);
    }

    #[test]
    fn pieces_do_not_matter() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut whole = Hash128::default();
        whole.bytes(&bytes);
        let whole = whole.finish();
        for size in 1..40 {
            let mut h = Hash128::default();
            bytes.chunks(size).for_each(|c| h.bytes(c));
            assert_eq!(h.finish(), whole, "{size}");
        }
    }

    #[test]
    fn texts_know_their_ends() {
        let pair = |a: &str, b: &str| {
            let mut h = Hash128::default();
            h.text(a);
            h.text(b);
            h.finish()
        };
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
    }
}
