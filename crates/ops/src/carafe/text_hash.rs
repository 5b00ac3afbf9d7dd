//! TextHash: a number below a bound for every text, by the 64-bit fingerprint of FarmHash over its bytes. The numbers are those
//! of TensorFlow's `StringToHashBucketFast`, so that weights learned there fit.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, bytes_of_text};

/// The bucket of every text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct TextHash {
    /// How many buckets there are.
    pub buckets: i64,
}

impl Op for TextHash {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.require(self.buckets > 0, || format!("attribute `buckets` must be positive, found {}", self.buckets))?;
        cx.set(0, ElementType::I64, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let buckets = self.buckets.unsigned_abs().max(1);
        let hash = |text: &String| (fingerprint(&bytes_of_text(text)) % buckets) as i64;
        let found: Vec<i64> = cx.input(0).strings()?.iter().map(hash).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, found)
    }
}

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

fn word(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&s[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn half(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&s[at..at + 4]);
    u64::from(u32::from_le_bytes(bytes))
}

fn mixed(v: u64) -> u64 {
    v ^ v >> 47
}

fn joined(u: u64, v: u64, factor: u64) -> u64 {
    let a = mixed((u ^ v).wrapping_mul(factor));
    let b = mixed((v ^ a).wrapping_mul(factor));
    b.wrapping_mul(factor)
}

/// The fingerprint of bytes, the same on every machine and in every version.
fn fingerprint(s: &[u8]) -> u64 {
    match s.len() {
        0..=16 => up_to_16(s),
        17..=32 => up_to_32(s),
        33..=64 => up_to_64(s),
        _ => longer(s),
    }
}

fn up_to_16(s: &[u8]) -> u64 {
    let n = s.len();
    let factor = K2.wrapping_add(n as u64 * 2);
    if n >= 8 {
        let (a, b) = (word(s, 0).wrapping_add(K2), word(s, n - 8));
        let c = b.rotate_right(37).wrapping_mul(factor).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(factor);
        return joined(c, d, factor);
    }
    if n >= 4 {
        return joined((n as u64).wrapping_add(half(s, 0) << 3), half(s, n - 4), factor);
    }
    if n == 0 {
        return K2;
    }
    let (a, b, c) = (u64::from(s[0]), u64::from(s[n >> 1]), u64::from(s[n - 1]));
    let (y, z) = (a + (b << 8), n as u64 + (c << 2));
    mixed(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_32(s: &[u8]) -> u64 {
    let n = s.len();
    let factor = K2.wrapping_add(n as u64 * 2);
    let (a, b) = (word(s, 0).wrapping_mul(K1), word(s, 8));
    let (c, d) = (word(s, n - 8).wrapping_mul(factor), word(s, n - 16).wrapping_mul(K2));
    joined(
        a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d),
        a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c),
        factor,
    )
}

fn up_to_64(s: &[u8]) -> u64 {
    let n = s.len();
    let factor = K2.wrapping_add(n as u64 * 2);
    let (a, b) = (word(s, 0).wrapping_mul(K2), word(s, 8));
    let (c, d) = (word(s, n - 8).wrapping_mul(factor), word(s, n - 16).wrapping_mul(K2));
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = joined(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), factor);
    let (e, f) = (word(s, 16).wrapping_mul(factor), word(s, 24));
    let g = y.wrapping_add(word(s, n - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(word(s, n - 24)).wrapping_mul(factor);
    joined(
        e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h),
        e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g),
        factor,
    )
}

// 32 bytes from a position, with two seeds.
fn weak(s: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (w, x, y, z) = (word(s, at), word(s, at + 8), word(s, at + 16), word(s, at + 24));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(x).wrapping_add(y);
    (a.wrapping_add(z), b.wrapping_add(a.rotate_right(44)).wrapping_add(c))
}

fn longer(s: &[u8]) -> u64 {
    let n = s.len();
    let seed = 81u64;
    let mut x = seed.wrapping_mul(K2).wrapping_add(word(s, 0));
    let mut y = seed.wrapping_mul(K1).wrapping_add(113);
    let mut z = mixed(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    let end = (n - 1) / 64 * 64;
    let last = n - 64;
    let mut at = 0;
    while at != end {
        (x, y, z, v, w) = step(s, at, (x, y, z, v, w), K1, 1);
        at += 64;
    }
    let factor = K1.wrapping_add((z & 0xff) << 1);
    w.0 = w.0.wrapping_add((n as u64 - 1) & 63);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    (x, y, z, v, w) = step(s, last, (x, y, z, v, w), factor, 9);
    joined(
        joined(v.0, w.0, factor).wrapping_add(mixed(y).wrapping_mul(K0)).wrapping_add(z),
        joined(v.1, w.1, factor).wrapping_add(x),
        factor,
    )
}

type State = (u64, u64, u64, (u64, u64), (u64, u64));

// 64 bytes from a position; the last ones count their state nine times.
fn step(s: &[u8], at: usize, (x, y, z, v, w): State, factor: u64, times: u64) -> State {
    let x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(s, at + 8)).rotate_right(37).wrapping_mul(factor);
    let y = y.wrapping_add(v.1).wrapping_add(word(s, at + 48)).rotate_right(42).wrapping_mul(factor);
    let x = x ^ w.1.wrapping_mul(times);
    let y = y.wrapping_add(v.0.wrapping_mul(times)).wrapping_add(word(s, at + 40));
    let z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(factor);
    let v = weak(s, at, v.1.wrapping_mul(factor), x.wrapping_add(w.0));
    let w = weak(s, at + 32, z.wrapping_add(w.1), y.wrapping_add(word(s, at + 16)));
    (z, y, x, v, w)
}
