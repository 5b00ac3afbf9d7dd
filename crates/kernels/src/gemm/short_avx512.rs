//! Short sums of cells: tiles of 14 rows one below the other, whose sums leave the registers as bf16, or as bytes, without a way
//! through memory. With few numbers to a sum, what surrounds a tile takes longer than the tile.

use super::leave::{Added, ShortAct, To};
use super::leave_avx512::{GELU, HARD, LIMITS, SWISH, Steps, acted, numbers_of, order_of_rows};
use super::task::Task;
use super::{StripFn, each_row};
use crate::Halves;
use std::arch::x86_64::*;

/// Rows of a tile.
const ROWS: usize = 14;
const LANES: usize = 16;

/// What is added besides the bias: nothing, numbers of bf16 before the limits, or behind them.
const NOTHING: usize = 0;
const BEFORE: usize = 1;
const BEHIND: usize = 2;

/// The function for pairs, or for bytes.
pub(super) const fn strip_of(pairs: bool, bytes: bool) -> Option<StripFn> {
    match (pairs, bytes) {
        (true, _) => Some(strip),
        (_, true) => Some(strip_of_bytes),
        _ => None,
    }
}

/// See [`super::StripFn`]; for one tap, with a bias, a function and an addend behind the sums.
///
/// # Safety
/// As for [`super::StripFn`]; the processor has AVX-512 with bf16.
pub(super) unsafe fn strip(task: &Task, rows: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(short) = (*task.leaving).short.as_ref().filter(|s| s.halves == Halves::Bf16) else { return 0 };
        let tiles = rows / ROWS;
        if short.after.is_some() || task.tap_count != 1 || tiles == 0 {
            return 0;
        }
        let add = match (short.add.is_null(), short.add_last) {
            (true, _) => NOTHING,
            (_, false) => BEFORE,
            (_, true) => BEHIND,
        };
        match (short.act, task.ldb > LANES, add) {
            (ShortAct::Limits(..), false, NOTHING) => columns::<1, NOTHING, LIMITS>(task, tiles),
            (ShortAct::Limits(..), false, BEFORE) => columns::<1, BEFORE, LIMITS>(task, tiles),
            (ShortAct::Limits(..), false, _) => columns::<1, BEHIND, LIMITS>(task, tiles),
            (ShortAct::Limits(..), true, NOTHING) => columns::<2, NOTHING, LIMITS>(task, tiles),
            (ShortAct::Limits(..), true, BEFORE) => columns::<2, BEFORE, LIMITS>(task, tiles),
            (ShortAct::Limits(..), true, _) => columns::<2, BEHIND, LIMITS>(task, tiles),
            (ShortAct::Swish(_), false, NOTHING) => columns::<1, NOTHING, SWISH>(task, tiles),
            (ShortAct::Swish(_), true, NOTHING) => columns::<2, NOTHING, SWISH>(task, tiles),
            (ShortAct::Gelu(_), false, NOTHING) => columns::<1, NOTHING, GELU>(task, tiles),
            (ShortAct::Gelu(_), true, NOTHING) => columns::<2, NOTHING, GELU>(task, tiles),
            (ShortAct::Hard(..), false, NOTHING) => columns::<1, NOTHING, HARD>(task, tiles),
            (ShortAct::Hard(..), true, NOTHING) => columns::<2, NOTHING, HARD>(task, tiles),
            _ => return 0,
        }
        tiles * ROWS
    }
}

/// Tiles of `W` vectors of columns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")]
unsafe fn columns<const W: usize, const ADD: usize, const ACT: usize>(task: &Task, tiles: usize) {
    // SAFETY: the caller's promise; masks leave out what lies beyond the last column.
    unsafe {
        let l = &*task.leaving;
        let Some(short) = &l.short else { return };
        let numbers = numbers_of(short.act);
        let numbers = [_mm512_set1_ps(numbers[0]), _mm512_set1_ps(numbers[1]), _mm512_set1_ps(numbers[2])];
        let mut masks = [0u16; 2];
        let mut bias = [_mm512_setzero_ps(); 2];
        for v in 0..W {
            let left = task.columns.saturating_sub(v * LANES);
            masks[v] = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            if !l.bias.is_null() {
                bias[v] = _mm512_maskz_loadu_ps(masks[v], l.bias.wrapping_add(task.column + v * LANES));
            }
        }
        let whole = masks[W - 1] == 0xffff;
        let (taps, lda) = (*task.taps, super::opaque(task.lda));
        for tile in 0..tiles {
            let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
            let mut a = task.a[0].wrapping_add(tile * ROWS * lda + taps).cast::<i32>();
            let mut b = task.b;
            for _ in 0..task.depth {
                let first: __m512bh = std::mem::transmute(_mm512_loadu_ps(b));
                let mut second = first;
                if const { W > 1 } {
                    second = std::mem::transmute::<__m512, __m512bh>(_mm512_loadu_ps(b.add(LANES)));
                }
                each_row!(I, {
                    let pair: __m512bh = std::mem::transmute(_mm512_set1_epi32(a.add(I * lda).read_unaligned()));
                    sums[I][0] = _mm512_dpbf16_ps(sums[I][0], pair, first);
                    if const { W > 1 } {
                        sums[I][1] = _mm512_dpbf16_ps(sums[I][1], pair, second);
                    }
                });
                a = a.add(1);
                b = b.add(W * LANES);
            }
            let row = task.row + tile * ROWS;
            let mut to = short.to.wrapping_add(row * l.ldc + task.column);
            let mut add = short.add.wrapping_add(row * short.add_stride + task.column);
            each_row!(I, {
                macro_rules! end {
                    ($v:expr) => {{
                        let mut x = _mm512_add_ps(sums[I][$v], bias[$v]);
                        let mut more = _mm512_setzero_ps();
                        if const { ADD != NOTHING } {
                            let bits = _mm256_maskz_loadu_epi16(masks[$v], add.wrapping_add($v * LANES).cast());
                            more = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)));
                        }
                        if const { ADD == BEFORE } {
                            x = _mm512_add_ps(x, more);
                        }
                        x = acted::<ACT>(x, numbers);
                        if const { ADD == BEHIND } {
                            x = _mm512_add_ps(x, more);
                        }
                        x
                    }};
                }
                if const { W > 1 } {
                    let both: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(end!(1), end!(0)));
                    match whole {
                        true => _mm512_storeu_si512(to.cast(), both),
                        false => {
                            let mask = u32::from(masks[1]) << LANES | u32::from(masks[0]);
                            _mm512_mask_storeu_epi16(to.cast(), mask, both);
                        }
                    }
                } else {
                    let bits: __m256i = std::mem::transmute(_mm512_cvtneps_pbh(end!(0)));
                    match whole {
                        true => _mm256_storeu_si256(to.cast(), bits),
                        false => _mm256_mask_storeu_epi16(to.cast(), masks[0], bits),
                    }
                }
                to = to.wrapping_add(l.ldc);
                add = add.wrapping_add(short.add_stride);
            });
        }
    }
}

/// See [`super::StripFn`]; for one tap, where [`super::leave::Leaving::in_steps`].
///
/// # Safety
/// As for [`super::StripFn`]; the processor has AVX-512 with VNNI.
unsafe fn strip_of_bytes(task: &Task, rows: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let (l, tiles) = (&*task.leaving, rows / ROWS);
        if task.tap_count != 1 || tiles == 0 || !l.in_steps {
            return 0;
        }
        macro_rules! by_width {
            ($trip:literal, $add:literal) => {
                if task.ldb > LANES {
                    bytes::<2, $trip, $add>(task, tiles)
                } else {
                    bytes::<1, $trip, $add>(task, tiles)
                }
            };
        }
        match (l.round_trip.is_some(), matches!(l.add, Added::None)) {
            (false, true) => by_width!(false, false),
            (false, false) => by_width!(false, true),
            (true, true) => by_width!(true, false),
            (true, false) => by_width!(true, true),
        }
        tiles * ROWS
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
unsafe fn bytes<const W: usize, const TRIP: bool, const ADD: bool>(task: &Task, tiles: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let l = &*task.leaving;
        let To::U8(to, quantizer) = l.to else { return };
        let (steps, (added, add_stride)) = Steps::new(l, &quantizer);
        let mut masks = [0u16; 2];
        let mut lines = [[_mm512_setzero_ps(); 4]; 2];
        for v in 0..W {
            let left = task.columns.saturating_sub(v * LANES);
            masks[v] = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            if masks[v] != 0 {
                lines[v] = Steps::line(l, &quantizer, task.column + v * LANES, masks[v]);
            }
        }
        let whole = task.columns == 2 * LANES;
        let order = order_of_rows();
        let (taps, lda) = (*task.taps, super::opaque(task.lda));
        for tile in 0..tiles {
            let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
            let mut a = task.a[0].wrapping_add(tile * ROWS * lda + taps).cast::<i32>();
            let mut b = task.b;
            for _ in 0..task.depth {
                let first = _mm512_loadu_si512(b.cast());
                let mut second = first;
                if const { W > 1 } {
                    second = _mm512_loadu_si512(b.add(LANES).cast());
                }
                each_row!(I, {
                    let four = _mm512_set1_epi32(a.add(I * lda).read_unaligned());
                    sums[I][0] = _mm512_dpbusd_epi32(sums[I][0], four, first);
                    if const { W > 1 } {
                        sums[I][1] = _mm512_dpbusd_epi32(sums[I][1], four, second);
                    }
                });
                a = a.add(1);
                b = b.add(W * LANES);
            }
            let row = task.row + tile * ROWS;
            let to = to.wrapping_add(row * l.ldc + task.column);
            let added = added.wrapping_add(row * add_stride + task.column);
            macro_rules! end {
                ($row:expr, $v:expr) => {{
                    let mut add = _mm_setzero_si128();
                    if const { ADD } {
                        let from = added.wrapping_add($row * add_stride + $v * LANES);
                        add = _mm_maskz_loadu_epi8(masks[$v], from.cast());
                    }
                    steps.of::<TRIP, ADD>(_mm512_castsi512_ps(sums[$row][$v]), lines[$v], add)
                }};
            }
            if W > 1 && whole {
                each_row!(I, {
                    const NEXT: usize = I | 1;
                    if const { I < NEXT } {
                        let a = _mm512_packs_epi32(end!(I, 0), end!(I, 1));
                        let b = _mm512_packs_epi32(end!(NEXT, 0), end!(NEXT, 1));
                        let bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b));
                        _mm256_storeu_si256(to.wrapping_add(I * l.ldc).cast(), _mm512_castsi512_si256(bytes));
                        let second = _mm512_extracti64x4_epi64::<1>(bytes);
                        _mm256_storeu_si256(to.wrapping_add(NEXT * l.ldc).cast(), second);
                    }
                });
                continue;
            }
            each_row!(I, {
                macro_rules! store {
                    ($v:expr) => {{
                        let (bytes, to) = (_mm512_cvtepi32_epi8(end!(I, $v)), to.wrapping_add(I * l.ldc + $v * LANES));
                        match masks[$v] {
                            0xffff => _mm_storeu_si128(to.cast(), bytes),
                            mask => _mm_mask_storeu_epi8(to.cast(), mask, bytes),
                        }
                    }};
                }
                store!(0);
                if const { W > 1 } {
                    store!(1);
                }
            });
        }
    }
}
