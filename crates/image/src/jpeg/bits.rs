//! Bits of entropy-coded data and the codes in them. A marker ends the data; what is read behind it is zero, as libjpeg has
//! it, while bytes that simply end are an error.

use crate::{Result, broken};

pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The next bits, topmost first.
    window: u64,
    count: u32,
    /// Zeros in the window that no byte stands for.
    padding: u32,
    at_marker: bool,
    overdrawn: bool,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Bits<'a> {
        Bits { bytes, at, window: 0, count: 0, padding: 0, at_marker: false, overdrawn: false }
    }

    fn fill(&mut self) {
        while self.count <= 56 {
            let byte = match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                _ if self.at_marker => None,
                (Some(0xff), Some(0)) => {
                    self.at += 2;
                    Some(0xff)
                }
                // Fill bytes may stand in front of a marker.
                (Some(0xff), Some(0xff)) => {
                    self.at += 1;
                    continue;
                }
                (Some(0xff), Some(_)) => {
                    self.at_marker = true;
                    None
                }
                (Some(0xff), None) | (None, _) => None,
                (Some(byte), _) => {
                    self.at += 1;
                    Some(*byte)
                }
            };
            if byte.is_none() {
                self.padding += 8;
            }
            self.window |= u64::from(byte.unwrap_or(0)) << (56 - self.count);
            self.count += 8;
        }
    }

    /// The next 16 bits, which stay.
    fn peek(&mut self) -> usize {
        if self.count < 16 {
            self.fill();
        }
        (self.window >> 48) as usize
    }

    fn drop(&mut self, n: u32) {
        self.window <<= n;
        self.count -= n;
        if self.padding > self.count {
            self.padding = self.count;
            self.overdrawn |= !self.at_marker;
        }
    }

    /// At most 16 bits.
    pub(super) fn take(&mut self, n: u32) -> i32 {
        if n == 0 {
            return 0;
        }
        let bits = self.peek() >> (16 - n);
        self.drop(n);
        bits as i32
    }

    /// A number of `n` bits whose top bit tells the sign.
    pub(super) fn signed(&mut self, n: u32) -> i32 {
        let bits = self.take(n);
        if n > 0 && bits < 1 << (n - 1) { bits - (1 << n) + 1 } else { bits }
    }

    /// An error when more was read than there is.
    pub(super) fn check(&self) -> Result<()> {
        if self.overdrawn { Err(broken("the data is cut short")) } else { Ok(()) }
    }

    /// Goes on behind a restart marker, if one comes next.
    pub(super) fn restart(&mut self) {
        self.window = 0;
        (self.count, self.padding, self.at_marker) = (0, 0, false);
        let mut ahead = self.at;
        if let Some(0xd0..=0xd7) = super::next_marker(self.bytes, &mut ahead) {
            self.at = ahead;
        }
    }

    /// Where the bytes go on.
    pub(super) fn position(&self) -> usize {
        self.at
    }
}

/// Codes shorter than this are found by one look.
const FAST: usize = 9;

pub(super) struct Huffman {
    /// Length and value by the next `FAST` bits; length 0 for longer codes.
    fast: Vec<(u8, u8)>,
    /// For each length the first code that is too large, and what takes a code to the place of its value.
    limits: [(usize, isize); 17],
    values: Vec<u8>,
}

impl Huffman {
    pub(super) fn new(counts: &[u8; 16], values: &[u8]) -> Result<Huffman> {
        let mut table = Huffman { fast: vec![(0, 0); 1 << FAST], limits: [(0, 0); 17], values: values.to_vec() };
        let (mut code, mut position) = (0usize, 0usize);
        for (length, count) in (1..).zip(counts) {
            let count = usize::from(*count);
            if code + count > 1 << length {
                return Err(broken("a code table has more codes than there can be"));
            }
            table.limits[length] = (code + count, position as isize - code as isize);
            for i in 0..count {
                if length <= FAST {
                    let first = (code + i) << (FAST - length);
                    table.fast[first..first + (1 << (FAST - length))].fill((length as u8, values[position + i]));
                }
            }
            (code, position) = ((code + count) << 1, position + count);
        }
        Ok(table)
    }

    pub(super) fn next(&self, bits: &mut Bits<'_>) -> Result<u8> {
        let ahead = bits.peek();
        let (length, value) = self.fast[ahead >> (16 - FAST)];
        if length > 0 {
            bits.drop(u32::from(length));
            return Ok(value);
        }
        for length in FAST + 1..=16 {
            let (limit, shift) = self.limits[length];
            let code = ahead >> (16 - length);
            if code < limit {
                bits.drop(length as u32);
                let position = usize::try_from(code as isize + shift).ok();
                return position.and_then(|p| self.values.get(p)).copied().ok_or_else(no_code);
            }
        }
        Err(no_code())
    }
}

fn no_code() -> crate::ImageError {
    broken("a code is not in its table")
}
