//! Conversion between element types, with the results x86 gives: a float outside of i32 or i64 becomes the minimum, narrower
//! integers are the low bits of an i32 (u32 those of an i64), and integers never pass through a float on their way to another.

use crate::eltwise::pieces;
use crate::simd::dispatch;
use crate::{Exec, Isa, SharedMut, part_of};

/// The bits of a half precision float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Half(pub u16);

/// The bits of a bfloat16: the upper half of an f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Brain(pub u16);

/// A truth value: 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Bool(pub u8);

// SAFETY: each is a transparent integer, for which every bit pattern is valid.
unsafe impl bytemuck::Zeroable for Half {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Half {}
// SAFETY: as above.
unsafe impl bytemuck::Zeroable for Brain {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Brain {}
// SAFETY: as above.
unsafe impl bytemuck::Zeroable for Bool {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Bool {}

/// An element type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    F32,
    F64,
    F16,
    Bf16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

/// A type that converts from and to the others.
pub trait Element: bytemuck::Pod + Send + Sync {
    const FLOAT: bool;
    const KIND: Kind;
    fn to_f64(self) -> f64;
    /// The low bits, for integers.
    fn to_bits(self) -> u64;
    fn from_f64(x: f64) -> Self;
    fn from_i64(x: i64) -> Self;
    fn from_u64(x: u64) -> Self;
    /// Whether `to_bits` is a negative number's when its top bit is set.
    const SIGNED: bool;
}

/// Outside of i64, and for NaN, the minimum.
#[inline(always)]
fn to_i64(x: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) { x as i64 } else { i64::MIN }
}

/// Outside of i32, and for NaN, the minimum.
#[inline(always)]
fn to_i32(x: f64) -> i32 {
    if x > -2_147_483_649.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

/// Below 2^63 as an i64; above exactly, and 0 for infinity.
#[inline(always)]
fn to_u64(x: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if x >= HALF { (to_i64(x - HALF) as u64) ^ (1 << 63) } else { to_i64(x) as u64 }
}

macro_rules! integers {
    ($($t:ident $kind:ident $signed:literal |$x:ident| $from:expr;)*) => {$(
        impl Element for $t {
            const FLOAT: bool = false;
            const KIND: Kind = Kind::$kind;
            const SIGNED: bool = $signed;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as i64 as u64
            }
            #[inline(always)]
            fn from_f64($x: f64) -> $t {
                $from as $t
            }
            #[inline(always)]
            fn from_i64(x: i64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn from_u64(x: u64) -> $t {
                x as $t
            }
        }
    )*};
}

integers! {
    i8 I8 true |x| to_i32(x);
    i16 I16 true |x| to_i32(x);
    i32 I32 true |x| to_i32(x);
    i64 I64 true |x| to_i64(x);
    u8 U8 false |x| to_i32(x);
    u16 U16 false |x| to_i32(x);
    u32 U32 false |x| to_i64(x);
    u64 U64 false |x| to_u64(x);
}

macro_rules! floats {
    ($($t:ident $kind:ident to |$s:ident| $to:expr, from |$x:ident| $from:expr;)*) => {$(
        impl Element for $t {
            const FLOAT: bool = true;
            const KIND: Kind = Kind::$kind;
            const SIGNED: bool = true;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let $s = self;
                $to
            }
            #[inline(always)]
            fn to_bits(self) -> u64 {
                0
            }
            #[inline(always)]
            fn from_f64($x: f64) -> $t {
                $from
            }
            #[inline(always)]
            fn from_i64($x: i64) -> $t {
                $from
            }
            #[inline(always)]
            fn from_u64($x: u64) -> $t {
                $from
            }
        }
    )*};
}

floats! {
    f32 F32 to |x| f64::from(x), from |x| x as f32;
    f64 F64 to |x| x, from |x| x as f64;
    Half F16 to |x| f64::from(half_to_f32(x)), from |x| f32_to_half(x as f32);
    Brain Bf16 to |x| f64::from(brain_to_f32(x)), from |x| f32_to_brain(x as f32);
}

impl Element for Bool {
    const FLOAT: bool = false;
    const KIND: Kind = Kind::Bool;
    const SIGNED: bool = false;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Bool {
        Bool(u8::from(x != 0.0))
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Bool {
        Bool(u8::from(x != 0))
    }
    #[inline(always)]
    fn from_u64(x: u64) -> Bool {
        Bool(u8::from(x != 0))
    }
}

/// The f32 of the same value.
#[inline(always)]
pub fn half_to_f32(x: Half) -> f32 {
    let sign = u32::from(x.0 & 0x8000) << 16;
    let rest = u32::from(x.0 & 0x7fff);
    // Infinity and NaN keep their place at the top; a signalling NaN becomes a quiet one.
    if rest >= 0x7c00 {
        let quiet = if rest > 0x7c00 { 0x40_0000 } else { 0 };
        return f32::from_bits(sign | 0x7f80_0000 | (rest & 0x3ff) << 13 | quiet);
    }
    // Denormals are made by a difference: they count also where those of f32 are taken as zero.
    let (normal, small) = ((rest << 13) + (112 << 23), f32::from_bits((rest << 13) + (113 << 23)) - 2f32.powi(-14));
    f32::from_bits(sign | if rest < 0x400 { small.to_bits() } else { normal })
}

/// The nearest half, ties to even; too large ones become infinite.
#[inline(always)]
pub fn f32_to_half(x: f32) -> Half {
    let bits = x.to_bits();
    let (sign, size) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    let rest = if size > 0x7f80_0000 {
        0x7e00 | (size >> 13) as u16 & 0x3ff
    } else if size >= 0x4780_0000 {
        0x7c00
    } else if size < 0x3880_0000 {
        // Denormal as a half: the sum with 0.5 leaves the right bits.
        ((f32::from_bits(size) + 0.5).to_bits() - 0.5f32.to_bits()) as u16
    } else {
        let odd = (size >> 13) & 1;
        ((size + 0xfff + odd - (112 << 23)) >> 13) as u16
    };
    Half(sign | rest)
}

/// The f32 of the same value.
#[inline(always)]
pub fn brain_to_f32(x: Brain) -> f32 {
    f32::from_bits(u32::from(x.0) << 16)
}

/// The nearest bfloat16, ties to even.
#[inline(always)]
pub fn f32_to_brain(x: f32) -> Brain {
    let bits = x.to_bits();
    if x.is_nan() {
        return Brain((bits >> 16) as u16 | 0x40);
    }
    Brain((bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
}

/// Converts every element.
pub fn convert<A: Element, B: Element>(exec: &Exec<'_>, x: &[A], out: &mut [B]) {
    assert_eq!(x.len(), out.len(), "as many results as numbers");
    convert_bytes(exec, A::KIND, bytemuck::cast_slice(x), B::KIND, bytemuck::cast_slice_mut(out));
}

/// Runs `$body` with `$T` bound to the type of a kind.
macro_rules! with_kind {
    ($kind:expr, $T:ident => $body:expr) => {
        with_kind!(@ $kind, $T => $body,
            F32 f32, F64 f64, F16 Half, Bf16 Brain, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool Bool)
    };
    (@ $kind:expr, $T:ident => $body:expr, $($name:ident $t:ident),*) => {
        match $kind {
            $(Kind::$name => {
                type $T = $t;
                $body
            })*
        }
    };
}

/// As [`convert`], with types known only by name. Panics when a slice is not aligned for its type.
pub fn convert_bytes(exec: &Exec<'_>, from: Kind, x: &[u8], to: Kind, out: &mut [u8]) {
    let (size, out_size) = (from.size(), to.size());
    let n = x.len() / size;
    assert!(x.len() == n * size && out.len() == n * out_size, "as many results as numbers");
    if n == 0 {
        return;
    }
    let chunks = pieces(exec, n);
    let shared = SharedMut::new(out);
    exec.each(chunks, |chunk, _| {
        let mine = part_of(n, chunks, chunk);
        // SAFETY: chunks have parts of their own.
        let out = unsafe { shared.part(mine.start * out_size..mine.end * out_size) };
        convert_part(exec.isa, from, &x[mine.start * size..mine.end * size], to, out);
    });
}

impl Kind {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        with_kind!(self, T => size_of::<T>())
    }
}

/// The pairs that models are full of have loops of their own; all others meet in the middle.
fn convert_part(isa: Isa, from: Kind, x: &[u8], to: Kind, out: &mut [u8]) {
    use Kind::{Bf16, F16, F32, F64, I32, I64, U8};
    if from == to && from != Kind::Bool {
        return out.copy_from_slice(x);
    }
    macro_rules! direct {
        ($A:ident, $B:ident) => {
            direct::<$A, $B>(isa, bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out))
        };
    }
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! special {
            ($function:ident) => {
                // SAFETY: the level has the instructions, and the others were found.
                return unsafe { x86::$function(bytemuck::cast_slice(x), bytemuck::cast_slice_mut(out)) }
            };
        }
        let avx2 = isa.avx2().is_some();
        let f16c = avx2 && is_x86_feature_detected!("f16c");
        match (from, to) {
            (F16, F32) if f16c => special!(half_to_f32),
            (F32, F16) if f16c => special!(f32_to_half),
            (F32, I32) if avx2 => special!(f32_to_i32),
            (F32, I64) if isa.avx512().is_some() => special!(f32_to_i64),
            _ => {}
        }
    }
    match (from, to) {
        (I32, F32) => direct!(i32, f32),
        (I64, F32) => direct!(i64, f32),
        (U8, F32) => direct!(u8, f32),
        (F64, F32) => direct!(f64, f32),
        (F32, F64) => direct!(f32, f64),
        (F16, F32) => direct!(Half, f32),
        (F32, F16) => direct!(f32, Half),
        (Bf16, F32) => direct!(Brain, f32),
        (F32, Bf16) => direct!(f32, Brain),
        (I64, I32) => direct!(i64, i32),
        (I32, I64) => direct!(i32, i64),
        _ => with_kind!(from, A => by_the_middle::<A>(bytemuck::cast_slice(x), to, out)),
    }
}

fn direct<A: Element, B: Element>(isa: Isa, x: &[A], out: &mut [B]) {
    // SAFETY: the body is safe code; `dispatch!` checks the machine.
    unsafe {
        dispatch!(isa, <'a, S, A: Element, B: Element>(x: &'a [A], out: &'a mut [B]) {
            for (y, &x) in out.iter_mut().zip(x) {
                *y = if A::FLOAT { B::from_f64(x.to_f64()) } else { B::from_i64(x.to_bits() as i64) };
            }
        })
    }
}

/// Through f64, i64 or u64, a block at a time: a loop for each type instead of one for each pair.
fn by_the_middle<A: Element>(x: &[A], to: Kind, out: &mut [u8]) {
    const BLOCK: usize = 256;
    let size = to.size();
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK * size)) {
        if A::FLOAT {
            let mut middle = [0.0f64; BLOCK];
            middle.iter_mut().zip(x).for_each(|(m, x)| *m = x.to_f64());
            with_kind!(to, B => put_floats::<B>(&middle, bytemuck::cast_slice_mut(out)));
        } else {
            let mut middle = [0u64; BLOCK];
            middle.iter_mut().zip(x).for_each(|(m, x)| *m = x.to_bits());
            with_kind!(to, B => put_integers::<B>(&middle, A::SIGNED, bytemuck::cast_slice_mut(out)));
        }
    }
}

fn put_floats<B: Element>(middle: &[f64], out: &mut [B]) {
    out.iter_mut().zip(middle).for_each(|(y, &m)| *y = B::from_f64(m));
}

fn put_integers<B: Element>(middle: &[u64], signed: bool, out: &mut [B]) {
    let both = out.iter_mut().zip(middle);
    if signed {
        both.for_each(|(y, &m)| *y = B::from_i64(m as i64))
    } else {
        both.for_each(|(y, &m)| *y = B::from_u64(m))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Half;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn half_to_f32(x: &[Half], out: &mut [f32]) {
        let whole = x.len() / 8 * 8;
        for i in (0..whole).step_by(8) {
            // SAFETY: eight elements from `i` on lie in both.
            unsafe {
                let half = _mm_loadu_si128(x.as_ptr().add(i).cast());
                _mm256_storeu_ps(out.as_mut_ptr().add(i), _mm256_cvtph_ps(half));
            }
        }
        for i in whole..x.len() {
            out[i] = super::half_to_f32(x[i]);
        }
    }

    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn f32_to_half(x: &[f32], out: &mut [Half]) {
        let whole = x.len() / 8 * 8;
        for i in (0..whole).step_by(8) {
            // SAFETY: eight elements from `i` on lie in both.
            unsafe {
                let wide = _mm256_loadu_ps(x.as_ptr().add(i));
                let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
                _mm_storeu_si128(out.as_mut_ptr().add(i).cast(), half);
            }
        }
        for i in whole..x.len() {
            out[i] = super::f32_to_half(x[i]);
        }
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) unsafe fn f32_to_i64(x: &[f32], out: &mut [i64]) {
        let whole = x.len() / 8 * 8;
        for i in (0..whole).step_by(8) {
            // SAFETY: eight elements from `i` on lie in both.
            unsafe {
                let wide = _mm256_loadu_ps(x.as_ptr().add(i));
                _mm512_storeu_si512(out.as_mut_ptr().add(i).cast(), _mm512_cvttps_epi64(wide));
            }
        }
        for i in whole..x.len() {
            out[i] = super::to_i64(f64::from(x[i]));
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn f32_to_i32(x: &[f32], out: &mut [i32]) {
        let whole = x.len() / 8 * 8;
        for i in (0..whole).step_by(8) {
            // SAFETY: eight elements from `i` on lie in both.
            unsafe {
                let wide = _mm256_loadu_ps(x.as_ptr().add(i));
                _mm256_storeu_si256(out.as_mut_ptr().add(i).cast(), _mm256_cvttps_epi32(wide));
            }
        }
        for i in whole..x.len() {
            out[i] = super::to_i32(f64::from(x[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Pool, PoolOptions, Scratch};

    fn each<A: Element, B: Element + PartialEq + std::fmt::Debug>(x: &[A], want: &[B]) {
        for isa in Isa::available() {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, 0).unwrap());
            let exec = Exec::new(&pool, isa, &scratch);
            // Long enough for the vectors, and once more for the rest.
            for repeat in [1, 7] {
                let mut out = vec![B::from_i64(0); x.len() * repeat];
                convert(&exec, &x.repeat(repeat), &mut out);
                assert_eq!(out, want.repeat(repeat), "{isa:?}");
            }
        }
    }

    #[test]
    fn floats_outside_of_an_integer_give_its_minimum() {
        let x = [1.9f32, -1.9, 3e9, -3e9, f32::INFINITY, f32::NAN, 2_147_483_648.0, -2_147_483_648.0, 7.0];
        let low = i32::MIN;
        each(&x, &[1, -1, low, low, low, low, low, low, 7]);
        each(&[1e19f32, -1e19, f32::NAN, 2f32.powi(63), -3.5], &[i64::MIN, i64::MIN, i64::MIN, i64::MIN, -3]);
        each(&[2_147_483_647.5f64, -2_147_483_648.5], &[i32::MAX, i32::MIN]);
    }

    #[test]
    fn narrow_integers_take_the_low_bits() {
        each(&[300f32, -1.9, 255.0, 0.5], &[44u8, 255, 255, 0]);
        each(&[-300f32], &[-44i8]);
        each(&[-1f32, 5e9], &[u32::MAX, 705_032_704]);
        each(&[-1i64, 1 << 40, 258], &[u8::MAX, 0, 2]);
        each(&[u64::MAX, 5], &[-1i64, 5]);
        each(&[1e19f32, f32::INFINITY, -1.0], &[9_999_999_980_506_447_872, 0, u64::MAX]);
    }

    #[test]
    fn integers_become_the_nearest_float() {
        each(&[i64::MAX, -3, 16_777_217], &[9.223_372e18f32, -3.0, 16_777_216.0]);
        each(&[u64::MAX, 0], &[1.844_674_4e19f32, 0.0]);
        each(&[200u8, 0], &[200.0f32, 0.0]);
    }

    #[test]
    fn truth_is_all_but_zero() {
        each(&[0.0f32, -0.0, 0.25, f32::NAN], &[Bool(0), Bool(0), Bool(1), Bool(1)]);
        each(&[256i64, 0], &[Bool(1), Bool(0)]);
        each(&[Bool(1), Bool(0)], &[1.0f32, 0.0]);
    }

    #[test]
    fn every_half_is_itself_again() {
        let all: Vec<Half> = (0..=u16::MAX).map(Half).filter(|h| h.0 & 0x7fff <= 0x7c00).collect();
        let wide: Vec<f32> = all.iter().map(|&h| half_to_f32(h)).collect();
        assert_eq!((wide[1], wide[0x3c00], wide[0x7bff]), (2f32.powi(-24), 1.0, 65_504.0));
        each(&all, &wide);
        each(&wide, &all);
    }

    #[test]
    fn halves_round_to_the_nearest_even() {
        let x = [1.000_488_3f32, 1.001_464_8, 65_519.0, 65_520.0, 2.980_232_2e-8, 2.980_233e-8, -1e-30, 6.1e-5];
        let want = [0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 1, 0x8000, 0x03ff].map(Half);
        each(&x, &want);
        assert!(half_to_f32(f32_to_half(f32::NAN)).is_nan());
        each(&[1.0f64 + 2f64.powi(-11) + 2f64.powi(-40)], &[Half(0x3c00)]);
    }

    #[test]
    fn brains_round_to_the_nearest_even() {
        each(
            &[1.0f32, 1.003_906_3, 1.011_718_8, f32::INFINITY, f32::MAX],
            &[0x3f80, 0x3f80, 0x3f82, 0x7f80, 0x7f80].map(Brain),
        );
        each(&[Brain(0x4049)], &[3.140_625f32]);
        assert!(brain_to_f32(f32_to_brain(f32::NAN)).is_nan());
    }

    #[test]
    fn types_may_be_known_by_name_only() {
        let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, 0).unwrap());
        let exec = Exec::new(&pool, Isa::best(), &scratch);
        let (x, mut out) = ([2.5f32, -1.0], [0i64; 2]);
        convert_bytes(&exec, Kind::F32, bytemuck::cast_slice(&x), Kind::I64, bytemuck::cast_slice_mut(&mut out));
        assert_eq!(out, [2, -1]);
    }
}
