//! Tiles turned in registers: 16x16, 8x8 and 4x4 of 4 bytes, 4x4 of 8, 8x8 of 2 and 1.

#[cfg(target_arch = "x86_64")]
use super::weave::weave;
use crate::Isa;
use crate::simd::{self, Simd, dispatch};

/// `dst[j][i] = src[i][j]`; distances of rows and columns in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) src: isize,
    pub(super) dst: isize,
}

/// # Safety
/// The block lies within what the pointers may reach; nobody else writes it; the machine has `isa`.
pub(super) unsafe fn turn(isa: Isa, size: usize, b: Block, src: *const u8, dst: *mut u8) {
    // SAFETY: passed on from the caller.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if isa.avx2().is_some() {
            let least = b.rows.min(b.columns);
            match size {
                4 => match weave(b.rows, b.columns, b.src, b.dst) {
                    Some(how) if b.rows.max(b.columns) >= 8 => return super::weave::woven(how, b, src, dst),
                    Some(_) => {}
                    None if least >= 16 && isa.avx512().is_some() => return x86::tiles_of_4x16(b, src, dst),
                    None if least >= 8 => return x86::tiles_of_4x8(b, src, dst),
                    None if least >= 4 => return x86::tiles_of_4x4(b, src, dst),
                    None => {}
                },
                8 if least >= 4 => return x86::tiles_of_8x4(b, src, dst),
                2 if least >= 8 => return x86::tiles_of_2x8(b, src, dst),
                1 if least >= 8 => return x86::tiles_of_1x8(b, src, dst),
                _ => {}
            }
        }
        if size == 4 && b.rows.min(b.columns) >= 4 && [b.src, b.dst].iter().all(|step| *step > 0 && step % 4 == 0) {
            return dispatch!(isa, <S>(b: Block, src: *const u8, dst: *mut u8) { floats::<S>(b, src.cast(), dst.cast()) });
        }
        match size {
            1 => plain::<u8>(b, src, dst),
            2 => plain::<u16>(b, src, dst),
            4 => plain::<u32>(b, src, dst),
            8 => plain::<u64>(b, src, dst),
            _ => plain::<u128>(b, src, dst),
        }
    }
}

/// Elements of 4 bytes in tiles of a vector's lanes; loads and stores of floats keep all bits.
#[inline(always)]
unsafe fn floats<S: Simd>(b: Block, src: *const f32, dst: *mut f32) {
    let (from_stride, to_stride) = (b.src as usize / 4, b.dst as usize / 4);
    for i in (0..b.rows).step_by(S::N) {
        for j in (0..b.columns).step_by(S::N) {
            let rows = (b.rows - i).min(S::N);
            // SAFETY: a part of the block.
            unsafe {
                S::transpose(simd::Block {
                    from: src.add(i * from_stride + j),
                    from_stride,
                    to: dst.add(j * to_stride + i),
                    to_stride,
                    rows,
                    width: (b.columns - j).min(S::N),
                    to_width: rows,
                });
            }
        }
    }
}

unsafe fn plain<T: Copy>(b: Block, src: *const u8, dst: *mut u8) {
    for j in 0..b.columns as isize {
        for i in 0..b.rows as isize {
            // SAFETY: elements of the block.
            unsafe {
                let x = src.offset(i * b.src).cast::<T>().offset(j).read_unaligned();
                dst.offset(j * b.dst).cast::<T>().offset(i).write_unaligned(x);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Block;
    use std::arch::x86_64::*;

    /// Calls `tile(src, dst)` for the corners of tiles of N x N elements of S bytes that cover the block; the last of a
    /// row or column reaches back over its neighbour.
    #[inline(always)]
    unsafe fn cover<const S: usize, const N: usize>(
        b: Block,
        src: *const u8,
        dst: *mut u8,
        tile: impl Fn(*const u8, *mut u8),
    ) {
        let (down, right) = (b.rows.div_ceil(N), b.columns.div_ceil(N));
        // The side whose lines lie farther apart is walked along them.
        let along_rows = b.src.unsigned_abs() > b.dst.unsigned_abs();
        let (outer, inner) = if along_rows { (down, right) } else { (right, down) };
        for o in 0..outer {
            for k in 0..inner {
                let (i, j) = if along_rows { (o, k) } else { (k, o) };
                let (i, j) = ((i * N).min(b.rows - N), (j * N).min(b.columns - N));
                // SAFETY: the corner of a tile that lies within the block, which has at least N rows and columns.
                unsafe { tile(src.offset(i as isize * b.src).add(j * S), dst.offset(j as isize * b.dst).add(i * S)) };
            }
        }
    }

    /// Tiles whose sides are whole cache lines, so that rows a power of two apart, which share a set of the cache, are
    /// touched once. What is left at the right and at the bottom is turned in smaller tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    pub(super) unsafe fn tiles_of_4x16(b: Block, src: *const u8, dst: *mut u8) {
        let (rows, columns) = (b.rows / 16 * 16, b.columns / 16 * 16);
        // SAFETY: `cover` gives corners of tiles within the block; strips reach to its end, and are as wide as their
        // tiles at least.
        unsafe {
            let strip = |strip: Block, i: usize, j: usize| {
                let (s, d) = (src.offset(i as isize * b.src).add(4 * j), dst.offset(j as isize * b.dst).add(4 * i));
                match strip.rows.min(strip.columns) {
                    16.. => cover::<4, 16>(strip, s, d, |s, d| tile_4x16(s, b.src, d, b.dst)),
                    8.. => tiles_of_4x8(strip, s, d),
                    _ => tiles_of_4x4(strip, s, d),
                }
            };
            let width = |left: usize| {
                if left > 8 {
                    16
                } else if left > 4 {
                    8
                } else {
                    4
                }
            };
            strip(Block { rows, columns, ..b }, 0, 0);
            if columns < b.columns {
                let columns = width(b.columns - columns);
                strip(Block { rows, columns, ..b }, 0, b.columns - columns);
            }
            if rows < b.rows {
                let rows = width(b.rows - rows);
                strip(Block { rows, ..b }, b.rows - rows, 0);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    #[inline]
    unsafe fn tile_4x16(src: *const u8, from: isize, dst: *mut u8, to: isize) {
        // SAFETY: sixteen rows of sixteen elements.
        let row = |k: usize| unsafe { _mm512_loadu_ps(src.offset(k as isize * from).cast()) };
        // SAFETY: sixteen columns of sixteen elements.
        let put = |k: usize, v| unsafe { _mm512_storeu_ps(dst.offset(k as isize * to).cast(), v) };
        // Four rows, turned within quarters: quarter q of vector k holds their elements of column 4 q + k.
        let four = |k: usize| {
            let (a, b, c, d) = (row(k), row(k + 1), row(k + 2), row(k + 3));
            let (ab0, ab1) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (cd0, cd1) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
            [
                _mm512_shuffle_ps::<0x44>(ab0, cd0),
                _mm512_shuffle_ps::<0xee>(ab0, cd0),
                _mm512_shuffle_ps::<0x44>(ab1, cd1),
                _mm512_shuffle_ps::<0xee>(ab1, cd1),
            ]
        };
        let (r0, r4, r8, r12) = (four(0), four(4), four(8), four(12));
        for k in 0..4 {
            // Even and odd quarters of the upper and of the lower eight rows.
            let (even0, odd0) =
                (_mm512_shuffle_f32x4::<0x88>(r0[k], r4[k]), _mm512_shuffle_f32x4::<0xdd>(r0[k], r4[k]));
            let (even8, odd8) =
                (_mm512_shuffle_f32x4::<0x88>(r8[k], r12[k]), _mm512_shuffle_f32x4::<0xdd>(r8[k], r12[k]));
            put(k, _mm512_shuffle_f32x4::<0x88>(even0, even8));
            put(k + 4, _mm512_shuffle_f32x4::<0x88>(odd0, odd8));
            put(k + 8, _mm512_shuffle_f32x4::<0xdd>(even0, even8));
            put(k + 12, _mm512_shuffle_f32x4::<0xdd>(odd0, odd8));
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tiles_of_4x8(b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: `cover` gives corners of tiles within the block.
        unsafe { cover::<4, 8>(b, src, dst, |s, d| tile_4x8(s, b.src, d, b.dst)) }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn tile_4x8(src: *const u8, from: isize, dst: *mut u8, to: isize) {
        // Rows k and k + 4 share a vector, so only turns within halves are left to do.
        let half = |row: isize, column: isize| {
            // SAFETY: eight rows of eight elements.
            unsafe { src.offset(row * from).cast::<f32>().offset(column) }
        };
        // SAFETY: as above.
        let pair = |row: isize, column: isize| unsafe {
            _mm256_insertf128_ps::<1>(
                _mm256_castps128_ps256(_mm_loadu_ps(half(row, column))),
                _mm_loadu_ps(half(row + 4, column)),
            )
        };
        for c in [0, 4] {
            let (a, b, e, f) = (pair(0, c), pair(1, c), pair(2, c), pair(3, c));
            let (ab0, ab1) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (ef0, ef1) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
            let columns = [
                _mm256_shuffle_ps::<0x44>(ab0, ef0),
                _mm256_shuffle_ps::<0xee>(ab0, ef0),
                _mm256_shuffle_ps::<0x44>(ab1, ef1),
                _mm256_shuffle_ps::<0xee>(ab1, ef1),
            ];
            for (k, column) in columns.into_iter().enumerate() {
                // SAFETY: eight columns of eight elements.
                unsafe { _mm256_storeu_ps(dst.offset((c + k as isize) * to).cast(), column) };
            }
        }
    }

    pub(super) unsafe fn tiles_of_4x4(b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: `cover` gives corners of tiles within the block.
        unsafe {
            cover::<4, 4>(b, src, dst, |s, d| {
                let row = |k: isize| _mm_loadu_ps(s.offset(k * b.src).cast());
                let (mut r0, mut r1, mut r2, mut r3) = (row(0), row(1), row(2), row(3));
                _MM_TRANSPOSE4_PS(&mut r0, &mut r1, &mut r2, &mut r3);
                for (k, r) in [r0, r1, r2, r3].into_iter().enumerate() {
                    _mm_storeu_ps(d.offset(k as isize * b.dst).cast(), r);
                }
            });
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tiles_of_8x4(b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: `cover` gives corners of tiles within the block.
        unsafe {
            cover::<8, 4>(b, src, dst, |s, d| {
                let row = |k: isize| _mm256_loadu_pd(s.offset(k * b.src).cast());
                let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
                let (a0, a1) = (_mm256_unpacklo_pd(r0, r1), _mm256_unpackhi_pd(r0, r1));
                let (b0, b1) = (_mm256_unpacklo_pd(r2, r3), _mm256_unpackhi_pd(r2, r3));
                let columns = [
                    _mm256_permute2f128_pd::<0x20>(a0, b0),
                    _mm256_permute2f128_pd::<0x20>(a1, b1),
                    _mm256_permute2f128_pd::<0x31>(a0, b0),
                    _mm256_permute2f128_pd::<0x31>(a1, b1),
                ];
                for (k, column) in columns.into_iter().enumerate() {
                    _mm256_storeu_pd(d.offset(k as isize * b.dst).cast(), column);
                }
            });
        }
    }

    pub(super) unsafe fn tiles_of_2x8(b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: `cover` gives corners of tiles within the block.
        unsafe {
            cover::<2, 8>(b, src, dst, |s, d| {
                let row = |k: isize| _mm_loadu_si128(s.offset(k * b.src).cast());
                let pairs = |k: isize| (_mm_unpacklo_epi16(row(k), row(k + 1)), _mm_unpackhi_epi16(row(k), row(k + 1)));
                let ((a0, a1), (b0, b1), (c0, c1), (d0, d1)) = (pairs(0), pairs(2), pairs(4), pairs(6));
                let four = |a, b, c, d| {
                    let (ab0, ab1) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
                    let (cd0, cd1) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
                    [
                        _mm_unpacklo_epi64(ab0, cd0),
                        _mm_unpackhi_epi64(ab0, cd0),
                        _mm_unpacklo_epi64(ab1, cd1),
                        _mm_unpackhi_epi64(ab1, cd1),
                    ]
                };
                let columns = four(a0, b0, c0, d0).into_iter().chain(four(a1, b1, c1, d1));
                for (k, column) in columns.enumerate() {
                    _mm_storeu_si128(d.offset(k as isize * b.dst).cast(), column);
                }
            });
        }
    }

    pub(super) unsafe fn tiles_of_1x8(b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: `cover` gives corners of tiles within the block.
        unsafe {
            cover::<1, 8>(b, src, dst, |s, d| {
                let pair = |k: isize| {
                    let row = |k: isize| _mm_loadl_epi64(s.offset(k * b.src).cast());
                    _mm_unpacklo_epi8(row(k), row(k + 1))
                };
                let (p0, p1, p2, p3) = (pair(0), pair(2), pair(4), pair(6));
                let (q0, q1) = (_mm_unpacklo_epi16(p0, p1), _mm_unpackhi_epi16(p0, p1));
                let (r0, r1) = (_mm_unpacklo_epi16(p2, p3), _mm_unpackhi_epi16(p2, p3));
                let two = [
                    _mm_unpacklo_epi32(q0, r0),
                    _mm_unpackhi_epi32(q0, r0),
                    _mm_unpacklo_epi32(q1, r1),
                    _mm_unpackhi_epi32(q1, r1),
                ];
                for (k, columns) in two.into_iter().enumerate() {
                    let k = 2 * k as isize;
                    _mm_storel_epi64(d.offset(k * b.dst).cast(), columns);
                    _mm_storel_epi64(d.offset((k + 1) * b.dst).cast(), _mm_unpackhi_epi64(columns, columns));
                }
            });
        }
    }
}
