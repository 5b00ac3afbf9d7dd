//! Tiles of cells of bytes in AVX2 registers, up to 6 rows by 16 columns. With AVX-VNNI one instruction multiplies and sums four
//! bytes of eight columns. Without it bytes become 16-bit numbers first, so that no sum of two products saturates
//! (`vpmaddubsw` would), and sums of pairs are put together at the end: exact, and about as fast as floats.

use super::cells::row_of;
use super::leave::{Leaving, SUMS, To, leave_plain};
use super::task::{Target, Task, store_rows};
use super::{Micro, TileFn};
use std::arch::asm;
use std::arch::x86_64::*;

const ROWS: usize = 6;
const LANES: usize = 8;

pub(crate) static VNNI: Micro = micro::<true>();
pub(crate) static WIDENED: Micro = micro::<false>();

const fn micro<const DOT: bool>() -> Micro {
    let (one, two) = (tiles::<DOT, 1>(), tiles::<DOT, 2>());
    let (pair, pairs_of_two) = (pairs::<DOT, 1>(), pairs::<DOT, 2>());
    let (few_one, few_two) = (few::<DOT, 1>(), few::<DOT, 2>());
    Micro {
        rows: ROWS,
        pair_rows: 3,
        width: 2 * LANES,
        grain: LANES,
        resumes: false,
        tiles: [one, two, two, two],
        pairs: [pair, pairs_of_two, pairs_of_two, pairs_of_two],
        skinny: [few_one, few_two, few_two, few_two],
        store: store_rows,
        unit: None,
        strip: None,
    }
}

const fn tiles<const DOT: bool, const V: usize>() -> [TileFn; 15] {
    let last: TileFn = tile::<DOT, 6, 0, V>;
    let mut all = [last; 15];
    let first: [TileFn; 6] = [
        tile::<DOT, 1, 0, V>,
        tile::<DOT, 1, 0, V>,
        tile::<DOT, 2, 0, V>,
        tile::<DOT, 3, 0, V>,
        tile::<DOT, 4, 0, V>,
        tile::<DOT, 5, 0, V>,
    ];
    let mut i = 0;
    while i < 6 {
        all[i] = first[i];
        i += 1;
    }
    all
}

const fn pairs<const DOT: bool, const V: usize>() -> [TileFn; 8] {
    let last: TileFn = tile::<DOT, 3, 3, V>;
    let mut all = [last; 8];
    all[0] = tile::<DOT, 1, 1, V>;
    all[1] = tile::<DOT, 1, 1, V>;
    all[2] = tile::<DOT, 2, 2, V>;
    all
}

const fn few<const DOT: bool, const V: usize>() -> [TileFn; 5] {
    [tile::<DOT, 1, 0, V>, tile::<DOT, 1, 0, V>, tile::<DOT, 2, 0, V>, tile::<DOT, 3, 0, V>, tile::<DOT, 4, 0, V>]
}

#[repr(align(32))]
struct Buffer([f32; ROWS * SUMS]);

/// `M0` rows from the first start, `M1` from the second, `V` vectors of columns.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const DOT: bool, const M0: usize, const M1: usize, const V: usize>(task: &Task) {
    let rows = M0 + M1;
    let mut buffer = Buffer([0.0; ROWS * SUMS]);
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
    unsafe {
        // Sums of pairs take twice the registers.
        for first in (0..rows).step_by(3) {
            let to = buffer.0.as_mut_ptr().add(first * SUMS);
            match rows - first {
                1 => sums::<DOT, 1, V>(task, first, M0, to),
                2 => sums::<DOT, 2, V>(task, first, M0, to),
                _ => sums::<DOT, 3, V>(task, first, M0, to),
            }
        }
        leave(&task.target(), buffer.0.as_mut_ptr(), rows);
    }
}

/// Sums of `R` rows from row `first` on.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn sums<const DOT: bool, const R: usize, const V: usize>(task: &Task, first: usize, m0: usize, to: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut starts = [std::ptr::null::<f32>(); R];
        for (r, start) in starts.iter_mut().enumerate() {
            *start = row_of(task, first + r, m0);
        }
        let mut sums = [[[_mm256_setzero_si256(); 2]; V]; R];
        let mut b = task.b;
        for tap in 0..task.tap_count {
            let offset = *task.taps.add(tap);
            for k in 0..task.depth {
                for v in 0..V {
                    let four = b.add(v * LANES).cast::<__m128i>();
                    let [low, high] = match DOT {
                        true => [_mm256_loadu_si256(four.cast()), _mm256_setzero_si256()],
                        false => [
                            _mm256_cvtepi8_epi16(_mm_loadu_si128(four)),
                            _mm256_cvtepi8_epi16(_mm_loadu_si128(four.add(1))),
                        ],
                    };
                    for r in 0..R {
                        let cell = starts[r].wrapping_add(offset + k).cast::<i32>().read_unaligned();
                        let sum = &mut sums[r][v];
                        if DOT {
                            let x = _mm256_set1_epi32(cell);
                            asm!(
                                "{{vex}} vpdpbusd {sum}, {x}, {b}",
                                sum = inout(ymm_reg) sum[0],
                                x = in(ymm_reg) x,
                                b = in(ymm_reg) low,
                                options(pure, nomem, nostack, preserves_flags),
                            );
                        } else {
                            let x = _mm256_cvtepu8_epi16(_mm_set1_epi32(cell));
                            sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(x, low));
                            sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(x, high));
                        }
                    }
                }
                b = b.add(V * LANES);
            }
        }
        for (r, line) in sums.iter().enumerate() {
            for (v, [low, high]) in line.iter().enumerate() {
                let whole = match DOT {
                    true => *low,
                    // Pairs of columns lie in lanes: 0 1 4 5 and 2 3 6 7.
                    false => _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(*low, *high)),
                };
                _mm256_storeu_si256(to.add(r * SUMS + v * LANES).cast(), whole);
            }
        }
    }
}

/// Takes sums out of the buffer as the task says. What counts steps already goes by vectors, the rest one by one.
#[target_feature(enable = "avx2,fma")]
unsafe fn leave(target: &Target, sums: *mut f32, rows: usize) {
    // SAFETY: the caller promises that `leaving` is set and the rectangle this thread's own; `Leaving::new` has checked the lengths.
    unsafe {
        let l: &Leaving<'_> = &*target.leaving;
        let To::U8(to, quantizer) = l.to else { return leave_plain(target, sums, rows) };
        if !l.in_steps || !l.most.is_null() || l.round_trip.is_some() || l.adds() != [false; 2] {
            return leave_plain(target, sums, rows);
        }
        let scale = std::slice::from_raw_parts(l.scale.add(target.column), target.columns);
        let bias = std::slice::from_raw_parts(l.bias.add(target.column), target.columns);
        for i in 0..rows {
            let line = std::slice::from_raw_parts(sums.add(i * SUMS).cast::<i32>(), target.columns);
            let out = to.add((target.row + i) * l.ldc + target.column);
            let out = std::slice::from_raw_parts_mut(out, target.columns);
            for (j, byte) in out.iter_mut().enumerate() {
                let x = (line[j] as f32).mul_add(scale[j], bias[j]);
                let x = if x > quantizer.low { x } else { quantizer.low };
                let x = if x < quantizer.high { x } else { quantizer.high };
                // Between the limits, which bytes have: the conversion never saturates.
                *byte = (x.round_ties_even().to_int_unchecked::<i32>() + quantizer.zero) as u8;
            }
        }
    }
}
