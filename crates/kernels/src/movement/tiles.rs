//! Tiles turned in registers: 8x8 and 4x4 of 4 bytes, 4x4 of 8, 8x8 of 2 and 1, and two or three streams of 4 bytes woven
//! together or taken apart.

use super::transpose::weave;
use crate::Isa;

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
        if isa >= Isa::Avx2 {
            let least = b.rows.min(b.columns);
            match size {
                4 => match weave(b.rows, b.columns, b.src, b.dst) {
                    Some((n, together)) => return x86::woven(n, together, b, src, dst),
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
        match size {
            1 => plain::<u8>(b, src, dst),
            2 => plain::<u16>(b, src, dst),
            4 => plain::<u32>(b, src, dst),
            8 => plain::<u64>(b, src, dst),
            _ => plain::<u128>(b, src, dst),
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
        let mut i = 0;
        while i < b.rows {
            let at_i = i.min(b.rows - N);
            let mut j = 0;
            while j < b.columns {
                let at_j = j.min(b.columns - N);
                // SAFETY: the corner of a tile that lies within the block, which has at least N rows and columns.
                unsafe {
                    tile(
                        src.offset(at_i as isize * b.src).add(at_j * S),
                        dst.offset(at_j as isize * b.dst).add(at_i * S),
                    );
                }
                j += N;
            }
            i += N;
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

    /// `n` streams of 4-byte elements: row `i` of the source to every n-th element of the destination, or back.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn woven(n: usize, together: bool, b: Block, src: *const u8, dst: *mut u8) {
        // SAFETY: passed on from the caller.
        unsafe {
            match (n, together) {
                (2, true) => weave_2(b, src, dst),
                (2, false) => unweave_2(b, src, dst),
                (_, true) => weave_3(b, src, dst),
                (_, false) => unweave_3(b, src, dst),
            }
        }
    }

    #[inline(always)]
    unsafe fn rest(b: Block, done: usize, together: bool, src: *const u8, dst: *mut u8) {
        // SAFETY: elements of the block that the vectors left.
        unsafe {
            if together {
                let left = Block { columns: b.columns - done, ..b };
                super::plain::<u32>(left, src.add(4 * done), dst.offset(done as isize * b.dst));
            } else {
                let left = Block { rows: b.rows - done, ..b };
                super::plain::<u32>(left, src.offset(done as isize * b.src), dst.add(4 * done));
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn weave_2(b: Block, src: *const u8, dst: *mut u8) {
        let mut j = 0;
        // SAFETY: eight columns of both rows, which are 16 elements of the destination.
        unsafe {
            let row = |k: isize, j: usize| _mm256_loadu_ps(src.offset(k * b.src).cast::<f32>().add(j));
            while j + 8 <= b.columns {
                let (x, y) = (row(0, j), row(1, j));
                let (low, high) = (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
                let to = dst.cast::<f32>().add(2 * j);
                _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(low, high));
                _mm256_storeu_ps(to.add(8), _mm256_permute2f128_ps::<0x31>(low, high));
                j += 8;
            }
            rest(b, j, true, src, dst);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn unweave_2(b: Block, src: *const u8, dst: *mut u8) {
        let mut i = 0;
        // SAFETY: eight rows of two elements, which go to both columns.
        unsafe {
            while i + 8 <= b.rows {
                let from = src.cast::<f32>().add(2 * i);
                let (x, y) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)));
                let even = _mm256_castps_pd(_mm256_shuffle_ps::<0x88>(x, y));
                let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0xdd>(x, y));
                let put = |k: isize, v| _mm256_storeu_pd(dst.offset(k * b.dst).cast::<f32>().add(i).cast(), v);
                put(0, _mm256_permute4x64_pd::<0xd8>(even));
                put(1, _mm256_permute4x64_pd::<0xd8>(odd));
                i += 8;
            }
            rest(b, i, false, src, dst);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn weave_3(b: Block, src: *const u8, dst: *mut u8) {
        let mut j = 0;
        // Element e of output vector v is element (8 v + e) / 3 of row (8 v + e) % 3.
        let place = [
            _mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2),
            _mm256_setr_epi32(2, 3, 3, 3, 4, 4, 4, 5),
            _mm256_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7),
        ];
        // SAFETY: eight columns of three rows, which are 24 elements of the destination.
        unsafe {
            let row = |k: isize, j: usize| _mm256_loadu_ps(src.offset(k * b.src).cast::<f32>().add(j));
            while j + 8 <= b.columns {
                let (x, y, z) = (row(0, j), row(1, j), row(2, j));
                let to = dst.cast::<f32>().add(3 * j);
                let at = |v, p| _mm256_permutevar8x32_ps(v, p);
                let p = place[0];
                let v = _mm256_blend_ps::<0b1001_0010>(at(x, p), at(y, p));
                _mm256_storeu_ps(to, _mm256_blend_ps::<0b0010_0100>(v, at(z, p)));
                let p = place[1];
                let v = _mm256_blend_ps::<0b0010_0100>(at(x, p), at(y, p));
                _mm256_storeu_ps(to.add(8), _mm256_blend_ps::<0b0100_1001>(v, at(z, p)));
                let p = place[2];
                let v = _mm256_blend_ps::<0b0100_1001>(at(x, p), at(y, p));
                _mm256_storeu_ps(to.add(16), _mm256_blend_ps::<0b1001_0010>(v, at(z, p)));
                j += 8;
            }
            rest(b, j, true, src, dst);
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn unweave_3(b: Block, src: *const u8, dst: *mut u8) {
        let mut i = 0;
        // SAFETY: eight rows of three elements, which go to three columns.
        unsafe {
            while i + 8 <= b.rows {
                let from = src.cast::<f32>().add(3 * i);
                let (x, y, z) = (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)), _mm256_loadu_ps(from.add(16)));
                let put = |k: isize, v| _mm256_storeu_ps(dst.offset(k * b.dst).cast::<f32>().add(i), v);
                // Every third element stands somewhere in the three vectors, each in a place of its own.
                let v = _mm256_blend_ps::<0b1001_0010>(x, y);
                let v = _mm256_blend_ps::<0b0010_0100>(v, z);
                put(0, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)));
                let v = _mm256_blend_ps::<0b0010_0100>(x, y);
                let v = _mm256_blend_ps::<0b0100_1001>(v, z);
                put(1, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)));
                let v = _mm256_blend_ps::<0b0100_1001>(x, y);
                let v = _mm256_blend_ps::<0b1001_0010>(v, z);
                put(2, _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7)));
                i += 8;
            }
            rest(b, i, false, src, dst);
        }
    }
}
