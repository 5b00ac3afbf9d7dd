//! Two or three streams of 4-byte elements woven together or taken apart: planes of an image to pixels, and back.

#[cfg(target_arch = "x86_64")]
use super::tiles::Block;

/// Streams, and whether they are woven together.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // Who asks only whether, everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weave {
    streams: usize,
    together: bool,
}

/// How a transpose is a weave, if it is one: the short side has no gaps.
pub(super) fn weave(rows: usize, columns: usize, src: isize, dst: isize) -> Option<Weave> {
    match (rows, columns) {
        (2 | 3, _) if dst == 4 * rows as isize => Some(Weave { streams: rows, together: true }),
        (_, 2 | 3) if src == 4 * columns as isize => Some(Weave { streams: columns, together: false }),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::woven;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Block, Weave};
    use std::arch::x86_64::*;

    /// # Safety
    /// The streams have at least eight elements and lie, like what they become, within what the pointers may reach;
    /// nobody else writes there.
    #[target_feature(enable = "avx2,fma")]
    pub(in super::super) unsafe fn woven(how: Weave, b: Block, src: *const u8, dst: *mut u8) {
        let (src, dst) = (src.cast::<f32>(), dst.cast::<f32>());
        // SAFETY: eight elements of each stream from `at` on, and their positions on the other side.
        unsafe {
            match (how.streams, how.together) {
                (2, true) => each(b.columns, |at| weave_2(b.src, src, dst, at)),
                (2, false) => each(b.rows, |at| unweave_2(b.dst, src, dst, at)),
                (_, true) => each(b.columns, |at| weave_3(b.src, src, dst, at)),
                (_, false) => each(b.rows, |at| unweave_3(b.dst, src, dst, at)),
            }
        }
    }

    /// Every eighth position, and a last one that leaves room for eight.
    #[inline(always)]
    fn each(n: usize, mut step: impl FnMut(usize)) {
        let mut at = 0;
        while at + 8 <= n {
            step(at);
            at += 8;
        }
        if at < n {
            step(n - 8);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn weave_2(apart: isize, src: *const f32, dst: *mut f32, at: usize) {
        // SAFETY: passed on from the caller.
        unsafe {
            let row = |k: isize| _mm256_loadu_ps(src.byte_offset(k * apart).add(at));
            let (x, y) = (row(0), row(1));
            let (low, high) = (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
            let to = dst.add(2 * at);
            _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(low, high));
            _mm256_storeu_ps(to.add(8), _mm256_permute2f128_ps::<0x31>(low, high));
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn unweave_2(apart: isize, src: *const f32, dst: *mut f32, at: usize) {
        // SAFETY: passed on from the caller.
        unsafe {
            let from = src.add(2 * at);
            let (x, y) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
            let even = _mm256_castps_pd(_mm256_shuffle_ps::<0x88>(x, y));
            let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0xdd>(x, y));
            let put = |k: isize, v| _mm256_storeu_pd(dst.byte_offset(k * apart).add(at).cast(), v);
            put(0, _mm256_permute4x64_pd::<0xd8>(even));
            put(1, _mm256_permute4x64_pd::<0xd8>(odd));
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn weave_3(apart: isize, src: *const f32, dst: *mut f32, at: usize) {
        // Element e of output vector v is element (8 v + e) / 3 of row (8 v + e) % 3.
        // SAFETY: passed on from the caller.
        unsafe {
            let row = |k: isize| _mm256_loadu_ps(src.byte_offset(k * apart).add(at));
            let (x, y, z) = (row(0), row(1), row(2));
            let to = dst.add(3 * at);
            let p = _mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2);
            let v = _mm256_blend_ps::<0b1001_0010>(_mm256_permutevar8x32_ps(x, p), _mm256_permutevar8x32_ps(y, p));
            _mm256_storeu_ps(to, _mm256_blend_ps::<0b0010_0100>(v, _mm256_permutevar8x32_ps(z, p)));
            let p = _mm256_setr_epi32(2, 3, 3, 3, 4, 4, 4, 5);
            let v = _mm256_blend_ps::<0b0010_0100>(_mm256_permutevar8x32_ps(x, p), _mm256_permutevar8x32_ps(y, p));
            _mm256_storeu_ps(to.add(8), _mm256_blend_ps::<0b0100_1001>(v, _mm256_permutevar8x32_ps(z, p)));
            let p = _mm256_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7);
            let v = _mm256_blend_ps::<0b0100_1001>(_mm256_permutevar8x32_ps(x, p), _mm256_permutevar8x32_ps(y, p));
            _mm256_storeu_ps(to.add(16), _mm256_blend_ps::<0b1001_0010>(v, _mm256_permutevar8x32_ps(z, p)));
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn unweave_3(apart: isize, src: *const f32, dst: *mut f32, at: usize) {
        // Every third element stands somewhere in the three vectors, each in a position of its own.
        // SAFETY: passed on from the caller.
        unsafe {
            let from = src.add(3 * at);
            let (x, y, z) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)), _mm256_loadu_ps(from.add(16)));
            let put = |k: isize, v| _mm256_storeu_ps(dst.byte_offset(k * apart).add(at), v);
            let v = _mm256_blend_ps::<0b0010_0100>(_mm256_blend_ps::<0b1001_0010>(x, y), z);
            put(0, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)));
            let v = _mm256_blend_ps::<0b0100_1001>(_mm256_blend_ps::<0b0010_0100>(x, y), z);
            put(1, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)));
            let v = _mm256_blend_ps::<0b1001_0010>(_mm256_blend_ps::<0b0100_1001>(x, y), z);
            put(2, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7)));
        }
    }
}
