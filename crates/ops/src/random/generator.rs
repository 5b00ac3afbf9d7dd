//! The two generators of random words: Philox 4x32-10 (TensorFlow's numbers) and the Mersenne twister (PyTorch's). Both
//! hand out four 32-bit words at a time; what is left of the last four is lost.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A stream of words, four at a time.
#[derive(Debug)]
pub(super) enum Generator {
    Philox(Philox),
    Twister(Box<Twister>),
}

impl Generator {
    pub(super) fn next(&mut self) -> [u32; 4] {
        match self {
            Generator::Philox(g) => g.next(),
            Generator::Twister(g) => std::array::from_fn(|_| g.next()),
        }
    }
}

/// The key to use: the given one, or one that nobody can foresee when both seeds are 0.
pub(super) fn key(global_seed: u64, op_seed: u64) -> u64 {
    match (global_seed, op_seed) {
        (0, 0) => RandomState::new().build_hasher().finish(),
        _ => global_seed,
    }
}

/// Philox 4x32 with ten rounds: a block cipher over a counter.
#[derive(Debug)]
pub(super) struct Philox {
    key: u64,
    n: u64,
    counter: u64,
    state: [u64; 2],
}

impl Philox {
    /// `state` is what `next_state` gave after the evaluation before, zeros at first.
    pub(super) fn new(key: u64, op_seed: u64, state: [u64; 2]) -> Philox {
        let counter = if state[1] > 0 { state[1] } else { op_seed };
        Philox { key, n: state[0], counter, state }
    }

    fn next(&mut self) -> [u32; 4] {
        let (mut n, mut counter, mut key) = (halves(self.n), halves(self.counter), halves(self.key));
        for round in 0..10 {
            if round > 0 {
                key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
            }
            let a = halves(0xD251_1F53 * n[0] as u64);
            let b = halves(0xCD9E_8D57 * counter[0] as u64);
            n = [b[1] ^ n[1] ^ key[0], b[0]];
            counter = [a[1] ^ counter[1] ^ key[1], a[0]];
        }
        self.n = self.n.wrapping_add(1);
        if self.n == 0 {
            self.counter = self.counter.wrapping_add(1);
        }
        [n[0], n[1], counter[0], counter[1]]
    }

    /// Where the next evaluation starts: 256 steps further for each of the values drawn, as in OpenVINO.
    pub(super) fn next_state(&self, values: u64) -> [u64; 2] {
        let skip = values.wrapping_mul(256);
        let n = self.state[0].wrapping_add(skip);
        [n, self.state[1].wrapping_add(u64::from(n < skip))]
    }
}

// Low and high word.
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// MT19937.
#[derive(Debug)]
pub(super) struct Twister {
    words: [u32; WORDS],
    at: usize,
}

impl Twister {
    /// Only the low half of the seed counts.
    pub(super) fn new(seed: u64) -> Twister {
        let mut words = [seed as u32; WORDS];
        for i in 1..WORDS {
            let before = words[i - 1] ^ (words[i - 1] >> 30);
            words[i] = before.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Twister { words, at: WORDS }
    }

    fn next(&mut self) -> u32 {
        if self.at == WORDS {
            self.turn();
        }
        let mut y = self.words[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C_5680;
        y ^= (y << 15) & 0xEFC6_0000;
        y ^ (y >> 18)
    }

    fn turn(&mut self) {
        for i in 0..WORDS {
            let y = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % WORDS] & 0x7FFF_FFFF);
            let odd = if y & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.words[i] = self.words[(i + MIDDLE) % WORDS] ^ (y >> 1) ^ odd;
        }
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twister_gives_the_published_numbers() {
        let mut g = Twister::new(5489);
        assert_eq!(g.next(), 3_499_211_612);
        let ten_thousandth = (1..10_000).map(|_| g.next()).last();
        assert_eq!(ten_thousandth, Some(4_123_659_995));
    }

    #[test]
    fn a_full_counter_carries() {
        let mut g = Philox::new(1, 2, [u64::MAX, 0]);
        g.next();
        assert_eq!((g.n, g.counter), (0, 3));
        assert_eq!(g.next_state(1), [255, 1]);
    }

    #[test]
    fn two_zero_seeds_give_a_new_key_each_time() {
        assert_eq!(key(7, 0), 7);
        assert_eq!(key(0, 7), 0);
        assert_ne!(key(0, 0), key(0, 0));
    }
}
