//! Up to six rows of rounded numbers times a piece of 32 columns, by VNNI. Codes are the bytes without a sign, and the numbers
//! of a row those with one.

use super::rounded::Piece;
use crate::simd::prefetch;
use std::arch::x86_64::*;

/// Bytes ahead of which codes are asked for.
const AHEAD: usize = 2048;

/// Adds the products of up to six rows to their sums.
///
/// # Safety
/// As [`super::rounded::PieceFn`] says; the processor has AVX-512 with VNNI.
pub(super) unsafe fn rows<const FOUR: bool>(p: &Piece, rows: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            1 => tile::<1, FOUR>(p),
            2 => tile::<2, FOUR>(p),
            3 => tile::<3, FOUR>(p),
            4 => tile::<4, FOUR>(p),
            5 => tile::<5, FOUR>(p),
            _ => tile::<6, FOUR>(p),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
unsafe fn tile<const M: usize, const FOUR: bool>(p: &Piece) {
    let mut sums = [[_mm512_setzero_ps(); 2]; M];
    let low_half = _mm512_set1_epi8(15);
    let (mut codes, mut steps) = (p.codes, p.steps);
    let cells = p.each / if FOUR { 8 } else { 4 };
    // SAFETY: the caller promises so many codes, and as many steps of each row.
    unsafe {
        for g in 0..p.count / p.each {
            let mut exact = [[_mm512_setzero_si512(); 2]; M];
            for _ in 0..cells {
                if M == 1 {
                    prefetch(codes.wrapping_add(AHEAD).cast());
                    prefetch(codes.wrapping_add(AHEAD + 64).cast());
                }
                let both = [_mm512_loadu_si512(codes.cast()), _mm512_loadu_si512(codes.add(64).cast())];
                let low = if FOUR { both.map(|x| _mm512_and_si512(x, low_half)) } else { both };
                add::<M>(&mut exact, low, steps, p.pitch);
                if FOUR {
                    let high = both.map(|x| _mm512_and_si512(_mm512_srli_epi16::<4>(x), low_half));
                    add::<M>(&mut exact, high, steps.add(4), p.pitch);
                }
                codes = codes.add(128);
                steps = steps.add(if FOUR { 8 } else { 4 });
            }
            for i in 0..M {
                let scale = _mm512_set1_ps(*p.scales.add(i * p.scales_pitch + g));
                for v in 0..2 {
                    sums[i][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact[i][v]), scale, sums[i][v]);
                }
            }
        }
        for v in 0..2 {
            let scale = _mm512_loadu_ps(p.head.add(64 * v).cast());
            let mut zero = _mm512_set1_ps(p.center);
            if p.has_zeros {
                let own = _mm_loadu_si128(p.head.add(4 * 32 + 16 * v).cast());
                zero = _mm512_add_ps(zero, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(own)));
            }
            for i in 0..M {
                let of_row = _mm512_set1_ps(*p.sums.add(i * p.sums_pitch));
                let sum = _mm512_fnmadd_ps(zero, of_row, sums[i][v]);
                let to = p.to.add(i * 32 + 16 * v);
                _mm512_storeu_ps(to, _mm512_fmadd_ps(scale, sum, _mm512_loadu_ps(to)));
            }
        }
    }
}

/// Four numbers of each row times four codes of each column.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
#[inline]
unsafe fn add<const M: usize>(exact: &mut [[__m512i; 2]; M], codes: [__m512i; 2], steps: *const u8, pitch: usize) {
    for (i, exact) in exact.iter_mut().enumerate() {
        // SAFETY: the caller has four steps of each row.
        let four = _mm512_set1_epi32(unsafe { steps.add(i * pitch).cast::<i32>().read_unaligned() });
        for v in 0..2 {
            exact[v] = _mm512_dpbusd_epi32(exact[v], codes[v], four);
        }
    }
}
