//! Up to six rows of rounded numbers times a piece of 32 columns, by VNNI. Codes are the bytes without a sign, and the numbers
//! of a row those with one.

use super::rounded::Piece;
use super::unpack::{BYTES, INTEGERS, TABLE};
use crate::gemm::each_row;
use crate::simd::prefetch;
use std::arch::x86_64::*;

/// Bytes ahead of which codes are asked for.
const AHEAD: usize = 2048;

/// Adds the products of up to six rows to their sums.
///
/// # Safety
/// As [`super::rounded::PieceFn`] says; the processor has AVX-512 with VNNI.
pub(super) unsafe fn rows<const WAY: usize>(p: &Piece, rows: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            1 => tile::<1, WAY>(p),
            2 => tile::<2, WAY>(p),
            3 => tile::<3, WAY>(p),
            4 => tile::<4, WAY>(p),
            5 => tile::<5, WAY>(p),
            _ => tile::<6, WAY>(p),
        }
    }
}

/// Rows that [`each_row`] counts, of which the first `M` are there; sums stay in registers only where rows are constants.
const COUNTED: usize = 14;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
unsafe fn tile<const M: usize, const WAY: usize>(p: &Piece) {
    let mut sums = [[_mm512_setzero_ps(); 2]; COUNTED];
    let (mut codes, mut steps) = (p.codes, p.steps);
    let cells = p.each / if WAY == BYTES { 4 } else { 8 };
    // SAFETY: a table has 16 bytes; the caller promises so many codes, and as many steps of each row.
    unsafe {
        let table = _mm512_broadcast_i32x4(_mm_loadu_si128(p.table.as_ptr().cast()));
        for g in 0..p.count / p.each {
            let mut exact = [[_mm512_setzero_si512(); 2]; COUNTED];
            // Four numbers of each row times four codes of each column.
            macro_rules! add {
                ($a:expr, $b:expr, $at:expr) => {
                    let (a, b) = ($a, $b);
                    each_row!(I, {
                        if const { I < M } {
                            let four = steps.add(I * p.pitch + $at).cast::<i32>().read_unaligned();
                            let four = _mm512_set1_epi32(four);
                            exact[I][0] = _mm512_dpbusd_epi32(exact[I][0], a, four);
                            exact[I][1] = _mm512_dpbusd_epi32(exact[I][1], b, four);
                        }
                    });
                };
            }
            for _ in 0..cells {
                if const { M == 1 } {
                    prefetch(codes.wrapping_add(AHEAD).cast());
                    prefetch(codes.wrapping_add(AHEAD + 64).cast());
                }
                let (a, b) = (_mm512_loadu_si512(codes.cast()), _mm512_loadu_si512(codes.add(64).cast()));
                if const { WAY == BYTES } {
                    add!(a, b, 0);
                } else {
                    add!(half::<WAY>(a, table), half::<WAY>(b, table), 0);
                    let (a, b) = (_mm512_srli_epi16::<4>(a), _mm512_srli_epi16::<4>(b));
                    add!(half::<WAY>(a, table), half::<WAY>(b, table), 4);
                }
                codes = codes.add(128);
                steps = steps.add(if WAY == BYTES { 4 } else { 8 });
            }
            each_row!(I, {
                if const { I < M } {
                    let scale = _mm512_set1_ps(*p.scales.add(I * p.scales_pitch + g));
                    sums[I][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[I][0]), scale, sums[I][0]);
                    sums[I][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[I][1]), scale, sums[I][1]);
                }
            });
        }
        let scales = [_mm512_loadu_ps(p.head.cast()), _mm512_loadu_ps(p.head.add(64).cast())];
        let mut zeros = [_mm512_set1_ps(p.center); 2];
        if p.has_zeros {
            let own = [_mm_loadu_si128(p.head.add(4 * 32).cast()), _mm_loadu_si128(p.head.add(4 * 32 + 16).cast())];
            zeros[0] = _mm512_add_ps(zeros[0], _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(own[0])));
            zeros[1] = _mm512_add_ps(zeros[1], _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(own[1])));
        }
        each_row!(I, {
            if const { I < M } {
                let of_row = _mm512_set1_ps(*p.sums.add(I * p.sums_pitch));
                let to = p.to.add(I * 32);
                let sum = _mm512_fnmadd_ps(zeros[0], of_row, sums[I][0]);
                _mm512_storeu_ps(to, _mm512_fmadd_ps(scales[0], sum, _mm512_loadu_ps(to)));
                let (to, sum) = (to.add(16), _mm512_fnmadd_ps(zeros[1], of_row, sums[I][1]));
                _mm512_storeu_ps(to, _mm512_fmadd_ps(scales[1], sum, _mm512_loadu_ps(to)));
            }
        });
    }
}

// The bytes of the lower halves.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn half<const WAY: usize>(codes: __m512i, table: __m512i) -> __m512i {
    let codes = _mm512_and_si512(codes, _mm512_set1_epi8(15));
    if WAY == INTEGERS { codes } else { _mm512_shuffle_epi8(table, codes) }
}

/// Writes the bytes that stand for codes of four bits.
///
/// # Safety
/// As [`super::rounded::UnpackFn`] says, for 32 columns; the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn unpack(table: &[u8; 16], from: &[u8], to: &mut [u8], _width: usize) {
    assert!(to.len() >= 2 * from.len(), "{} bytes for {}", to.len(), from.len());
    // SAFETY: a table has 16 bytes; a row of cells becomes two, for which there is room.
    unsafe {
        let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
        for (from, to) in from.chunks_exact(128).zip(to.chunks_exact_mut(256)) {
            for at in [0, 64] {
                let both = _mm512_loadu_si512(from.as_ptr().add(at).cast());
                let to = to.as_mut_ptr().add(at);
                _mm512_storeu_si512(to.cast(), half::<TABLE>(both, table));
                _mm512_storeu_si512(to.add(128).cast(), half::<TABLE>(_mm512_srli_epi16::<4>(both), table));
            }
        }
    }
}
