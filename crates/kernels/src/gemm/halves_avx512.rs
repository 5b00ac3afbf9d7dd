//! Tiles of cells of two f16 in AVX-512 registers, up to 14 rows by 32 columns, in the layout of two bf16 (`cells_avx512.rs`), so
//! that packing, taps, ends and epilogues are the same.
//!
//! Numbers are widened, and multiplied and summed as floats. AVX512-FP16 could multiply twice as many (`vfmadd231ph`), but its
//! sums are f16: a product beyond 65504 would be infinite, sums of a few products would have the error of rounding all
//! inputs once more, and taking them out to floats every few steps would cost a third of what they save. Floats take any sum of
//! products as it is, so that the error is that of rounding the inputs, as in the tiles of AMX (`tdpfp16ps`), which is where f16
//! is fast. What is saved here is memory. Rows of `A` are widened once a tile, into a buffer that stays in the first-level cache;
//! of a step of the panel both numbers of all columns are, one after the other. All of it is AVX-512 F and BW, so every machine
//! with AVX-512 tests it.

use super::cells_avx512::Buffer;
use super::leave::SUMS;
use super::leave_avx512::leave;
use super::task::{Task, store_rows};
use super::{Micro, TileFn, each_row};
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

const ROWS: usize = 2 * GROUP;
/// Most rows from one start.
const GROUP: usize = 7;
const LANES: usize = 16;
/// Cells of a row that are widened together.
const CHUNK: usize = 64;
/// Numbers of such a row, and their bytes.
const LINE: usize = 2 * CHUNK;
const LINE_BYTES: usize = 4 * LINE;

pub(crate) static F16: Micro = MICRO;

pub(super) const MICRO: Micro = {
    // Panels are of one vector or two.
    let (one, two) = (tiles::<2>(), tiles::<4>());
    let (pair, pairs_of_two) = (pairs::<2>(), pairs::<4>());
    let (few_one, few_two) = (few::<2>(), few::<4>());
    Micro {
        rows: ROWS,
        pair_rows: GROUP,
        width: SUMS,
        grain: LANES,
        resumes: false,
        unit: None,
        strip: None,
        tiles: [one, one, two, two],
        pairs: [pair, pair, pairs_of_two, pairs_of_two],
        skinny: [few_one, few_one, few_two, few_two],
        store: store_rows,
    }
};

const fn tiles<const W: usize>() -> [TileFn; 15] {
    [
        tile::<1, 0, W>,
        tile::<1, 0, W>,
        tile::<2, 0, W>,
        tile::<3, 0, W>,
        tile::<4, 0, W>,
        tile::<5, 0, W>,
        tile::<6, 0, W>,
        tile::<7, 0, W>,
        tile::<7, 1, W>,
        tile::<7, 2, W>,
        tile::<7, 3, W>,
        tile::<7, 4, W>,
        tile::<7, 5, W>,
        tile::<7, 6, W>,
        tile::<7, 7, W>,
    ]
}

const fn pairs<const W: usize>() -> [TileFn; 8] {
    [
        tile::<1, 1, W>,
        tile::<1, 1, W>,
        tile::<2, 2, W>,
        tile::<3, 3, W>,
        tile::<4, 4, W>,
        tile::<5, 5, W>,
        tile::<6, 6, W>,
        tile::<7, 7, W>,
    ]
}

const fn few<const W: usize>() -> [TileFn; 5] {
    [tile::<1, 0, W>, tile::<1, 0, W>, tile::<2, 0, W>, tile::<3, 0, W>, tile::<4, 0, W>]
}

/// Floats of the rows of a tile.
#[repr(align(64))]
struct Lines([MaybeUninit<f32>; ROWS * LINE]);

/// Where the first numbers of sixteen cells are, then the second ones.
#[repr(align(64))]
struct Order([u16; 2 * LANES]);
static APART: Order = {
    let mut order = [0; 2 * LANES];
    let mut i = 0;
    while i < 2 * LANES {
        order[i] = (i % LANES * 2 + i / LANES) as u16;
        i += 1;
    }
    Order(order)
};

/// One row: its float to all lanes, multiplied and added. `$j` is the row, `$u` the number of the cell, `$s` and `$t` the
/// registers of its sums.
macro_rules! row {
    ($j:literal, $u:literal, $s:literal, $t:literal) => {
        concat!(
            ".if {m} > ",
            $j,
            "\n",
            "vbroadcastss zmm2, dword ptr [{p}+{line}*",
            $j,
            "+4*",
            $u,
            "]\n",
            "vfmadd231ps zmm",
            $s,
            ", zmm2, zmm0\n",
            ".if {w} == 4\n",
            "vfmadd231ps zmm",
            $t,
            ", zmm2, zmm1\n",
            ".endif\n",
            ".endif\n",
        )
    };
}

/// Number `$u` of all rows.
macro_rules! rows {
    ($u:literal) => {
        concat!(
            row!(0, $u, 4, 5),
            row!(1, $u, 6, 7),
            row!(2, $u, 8, 9),
            row!(3, $u, 10, 11),
            row!(4, $u, 12, 13),
            row!(5, $u, 14, 15),
            row!(6, $u, 16, 17),
            row!(7, $u, 18, 19),
            row!(8, $u, 20, 21),
            row!(9, $u, 22, 23),
            row!(10, $u, 24, 25),
            row!(11, $u, 26, 27),
            row!(12, $u, 28, 29),
            row!(13, $u, 30, 31),
        )
    };
}

/// `M0` rows from the first start, `M1` from the second; `W` counts columns in eights.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn tile<const M0: usize, const M1: usize, const W: usize>(task: &Task) {
    let mut s = [[_mm512_setzero_ps(); 2]; ROWS];
    let mut lines = Lines([const { MaybeUninit::uninit() }; ROWS * LINE]);
    let mut buffer = Buffer([const { MaybeUninit::uninit() }; ROWS * SUMS]);
    let (line, mut b) = (lines.0.as_mut_ptr().cast::<f32>(), task.b);
    // The tap to widen next, and its first cell that is left.
    let (mut tap, mut from) = (0, 0);
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read. Lines have room for
    // `CHUNK` cells of each row. Only registers named here are written.
    unsafe {
        while tap < task.tap_count && task.depth > 0 {
            let mut cells = 0;
            while tap < task.tap_count && cells < CHUNK {
                let (offset, count) = (*task.taps.add(tap) + from, (task.depth - from).min(CHUNK - cells));
                for i in 0..M0 + M1 {
                    let row = match i < M0 {
                        true => task.a[0].wrapping_add(i * task.lda),
                        false => task.a[1].wrapping_add((i - M0) * task.lda),
                    };
                    widen(row.add(offset), count, line.add(i * LINE + 2 * cells));
                }
                (cells, from) = (cells + count, from + count);
                if from == task.depth {
                    (tap, from) = (tap + 1, 0);
                }
            }
            asm!(
                "2:",
                "prefetcht0 byte ptr [{b}+32*{w}*24]",
                "vpermw zmm0, zmm3, zmmword ptr [{b}]",
                "vcvtph2ps zmm0, ymm0",
                ".if {w} == 4",
                "prefetcht0 byte ptr [{b}+32*{w}*24+64]",
                "vpermw zmm1, zmm3, zmmword ptr [{b}+64]",
                "vcvtph2ps zmm1, ymm1",
                ".endif",
                rows!(0),
                "vpermw zmm0, zmm3, zmmword ptr [{b}]",
                "vextracti64x4 ymm0, zmm0, 1",
                "vcvtph2ps zmm0, ymm0",
                ".if {w} == 4",
                "vpermw zmm1, zmm3, zmmword ptr [{b}+64]",
                "vextracti64x4 ymm1, zmm1, 1",
                "vcvtph2ps zmm1, ymm1",
                ".endif",
                rows!(1),
                "add {p}, 8",
                "add {b}, 32*{w}",
                "dec {k}",
                "jnz 2b",
                m = const M0 + M1,
                w = const W,
                line = const LINE_BYTES,
                p = inout(reg) line => _,
                b = inout(reg) b,
                k = inout(reg) cells => _,
                out("zmm0") _, out("zmm1") _, out("zmm2") _,
                in("zmm3") _mm512_load_si512(APART.0.as_ptr().cast()),
                inout("zmm4") s[0][0], inout("zmm5") s[0][1], inout("zmm6") s[1][0], inout("zmm7") s[1][1],
                inout("zmm8") s[2][0], inout("zmm9") s[2][1], inout("zmm10") s[3][0], inout("zmm11") s[3][1],
                inout("zmm12") s[4][0], inout("zmm13") s[4][1], inout("zmm14") s[5][0], inout("zmm15") s[5][1],
                inout("zmm16") s[6][0], inout("zmm17") s[6][1], inout("zmm18") s[7][0], inout("zmm19") s[7][1],
                inout("zmm20") s[8][0], inout("zmm21") s[8][1], inout("zmm22") s[9][0], inout("zmm23") s[9][1],
                inout("zmm24") s[10][0], inout("zmm25") s[10][1], inout("zmm26") s[11][0], inout("zmm27") s[11][1],
                inout("zmm28") s[12][0], inout("zmm29") s[12][1], inout("zmm30") s[13][0], inout("zmm31") s[13][1],
                options(readonly, nostack),
            );
        }
        let to = buffer.0.as_mut_ptr().cast::<f32>();
        each_row!(S, {
            if const { S < M0 + M1 } {
                _mm512_store_ps(to.add(S * SUMS), s[S][0]);
                if const { W > 2 } {
                    _mm512_store_ps(to.add(S * SUMS + LANES), s[S][1]);
                }
            }
        });
        leave(&task.target(), to, M0 + M1);
    }
}

/// The floats of so many cells.
///
/// # Safety
/// The cells can be read, and two floats for each written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
unsafe fn widen(from: *const f32, cells: usize, to: *mut f32) {
    let mut i = 0;
    while i < 2 * cells {
        let left = 2 * cells - i;
        let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
        // SAFETY: the caller's promise; the mask leaves out what lies behind.
        unsafe {
            let bits = _mm256_maskz_loadu_epi16(mask, from.cast::<i16>().add(i));
            _mm512_mask_storeu_ps(to.add(i), mask, _mm512_cvtph_ps(bits));
        }
        i += LANES;
    }
}
