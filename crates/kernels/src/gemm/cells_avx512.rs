//! Tiles of cells in AVX-512 registers, up to 14 rows by 32 columns: floats, two bf16 a cell (`vdpbf16ps`), four bytes a cell
//! (`vpdpbusd`). As in `f32_avx512` the loop is written out for the assembler. Sums go through a buffer that stays in the
//! first-level cache, so that what follows is compiled once.

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

/// What a cell holds.
const FLOAT: usize = 0;
const PAIR: usize = 1;
const BYTES: usize = 2;

pub(crate) static F32: Micro = micro::<FLOAT>();
pub(crate) static BF16: Micro = micro::<PAIR>();
pub(crate) static U8I8: Micro = micro::<BYTES>();

pub(super) const fn micro<const OP: usize>() -> Micro {
    // Panels are of one vector or two.
    let (one, two) = (tiles::<OP, 2>(), tiles::<OP, 4>());
    let (pair, pairs_of_two) = (pairs::<OP, 2>(), pairs::<OP, 4>());
    let (few_one, few_two) = (few::<OP, 2>(), few::<OP, 4>());
    Micro {
        rows: ROWS,
        pair_rows: GROUP,
        width: SUMS,
        grain: LANES,
        resumes: false,
        unit: None,
        strip: super::short_avx512::strip_of(OP == PAIR, OP == BYTES),
        tiles: [one, one, two, two],
        pairs: [pair, pair, pairs_of_two, pairs_of_two],
        skinny: [few_one, few_one, few_two, few_two],
        store: store_rows,
    }
}

const fn tiles<const OP: usize, const W: usize>() -> [TileFn; 15] {
    [
        tile::<OP, 1, 0, W>,
        tile::<OP, 1, 0, W>,
        tile::<OP, 2, 0, W>,
        tile::<OP, 3, 0, W>,
        tile::<OP, 4, 0, W>,
        tile::<OP, 5, 0, W>,
        tile::<OP, 6, 0, W>,
        tile::<OP, 7, 0, W>,
        tile::<OP, 7, 1, W>,
        tile::<OP, 7, 2, W>,
        tile::<OP, 7, 3, W>,
        tile::<OP, 7, 4, W>,
        tile::<OP, 7, 5, W>,
        tile::<OP, 7, 6, W>,
        tile::<OP, 7, 7, W>,
    ]
}

const fn pairs<const OP: usize, const W: usize>() -> [TileFn; 8] {
    [
        tile::<OP, 1, 1, W>,
        tile::<OP, 1, 1, W>,
        tile::<OP, 2, 2, W>,
        tile::<OP, 3, 3, W>,
        tile::<OP, 4, 4, W>,
        tile::<OP, 5, 5, W>,
        tile::<OP, 6, 6, W>,
        tile::<OP, 7, 7, W>,
    ]
}

const fn few<const OP: usize, const W: usize>() -> [TileFn; 5] {
    [tile::<OP, 1, 0, W>, tile::<OP, 1, 0, W>, tile::<OP, 2, 0, W>, tile::<OP, 3, 0, W>, tile::<OP, 4, 0, W>]
}

#[repr(align(64))]
pub(super) struct Buffer(pub(super) [MaybeUninit<f32>; ROWS * SUMS]);

/// One row of one step: its cell to all lanes, multiplied and added. `$m` is how many rows the group has, `$j` the row, `$at`
/// its address, `$s` and `$t` the registers of its sums.
macro_rules! row {
    ($m:literal, $j:literal, $at:literal, $u:literal, $s:literal, $t:literal) => {
        concat!(
            ".if {", $m, "} > ", $j, "\n",
            "vpbroadcastd zmm2, dword ptr [", $at, "+4*", $u, "]\n",
            ".if {op} == 0\n",
            "vfmadd231ps zmm", $s, ", zmm2, zmm0\n",
            ".endif\n",
            ".if {op} == 1\n",
            "vdpbf16ps zmm", $s, ", zmm2, zmm0\n",
            ".endif\n",
            ".if {op} == 2\n",
            "vpdpbusd zmm", $s, ", zmm2, zmm0\n",
            ".endif\n",
            ".if {w} == 4\n",
            ".if {op} == 0\n",
            "vfmadd231ps zmm", $t, ", zmm2, zmm1\n",
            ".endif\n",
            ".if {op} == 1\n",
            "vdpbf16ps zmm", $t, ", zmm2, zmm1\n",
            ".endif\n",
            ".if {op} == 2\n",
            "vpdpbusd zmm", $t, ", zmm2, zmm1\n",
            ".endif\n",
            ".endif\n",
            ".endif\n",
        )
    };
}

/// One step: row `$u` of the panel after `{b}`, and cell `$u` of each row of `A`. Panels are asked for 24 steps ahead, see
/// [`Task::ask_for`] for what comes after them.
macro_rules! step {
    ($u:literal) => {
        concat!(
            "prefetcht1 byte ptr [{ahead}]\n",
            "add {ahead}, qword ptr [{aside}+8]\n",
            "prefetcht0 byte ptr [{b}+32*{w}*(24+",
            $u,
            ")]\n",
            "vmovups zmm0, zmmword ptr [{b}+32*{w}*",
            $u,
            "]\n",
            ".if {w} == 4\n",
            "prefetcht0 byte ptr [{b}+32*{w}*(24+",
            $u,
            ")+64]\n",
            "vmovups zmm1, zmmword ptr [{b}+32*{w}*",
            $u,
            "+64]\n",
            ".endif\n",
            row!("m0", 0, "{p0}", $u, 4, 5),
            row!("m0", 1, "{p0}+{ld}", $u, 6, 7),
            row!("m0", 2, "{p0}+2*{ld}", $u, 8, 9),
            row!("m0", 3, "{p0}+{ld3}", $u, 10, 11),
            row!("m0", 4, "{p0}+4*{ld}", $u, 12, 13),
            row!("m0", 5, "{p0}+{ld5}", $u, 14, 15),
            row!("m0", 6, "{p0}+2*{ld3}", $u, 16, 17),
            row!("m1", 0, "{p1}", $u, 18, 19),
            row!("m1", 1, "{p1}+{ld}", $u, 20, 21),
            row!("m1", 2, "{p1}+2*{ld}", $u, 22, 23),
            row!("m1", 3, "{p1}+{ld3}", $u, 24, 25),
            row!("m1", 4, "{p1}+4*{ld}", $u, 26, 27),
            row!("m1", 5, "{p1}+{ld5}", $u, 28, 29),
            row!("m1", 6, "{p1}+2*{ld3}", $u, 30, 31),
        )
    };
}

macro_rules! clear {
    ($($n:literal)*) => { concat!($("vpxord xmm", $n, ", xmm", $n, ", xmm", $n, "\n"),*) };
}

/// `M0` rows from the first start, `M1` from the second; `W` counts columns in eights. The table that names it is handed out
/// only where the instructions of `OP` were detected.
#[allow(clippy::absurd_extreme_comparisons)] // The last row has number 13 and the first 0, among others.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn tile<const OP: usize, const M0: usize, const M1: usize, const W: usize>(task: &Task) {
    let mut s = [[_mm512_setzero_ps(); 2]; ROWS];
    let ld = task.lda * 4;
    let aside = [task.depth, task.ahead_step];
    let mut buffer = Buffer([const { MaybeUninit::uninit() }; ROWS * SUMS]);
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read. Only registers
    // named here are written.
    unsafe {
        asm!(
            clear!(4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),
            "test {count}, {count}",
            "jz 7f",
            "2:",
            "mov {k}, qword ptr [{taps}]",
            "lea {p0}, [{a0}+4*{k}]",
            ".if {m1} > 0",
            "lea {p1}, [{a1}+4*{k}]",
            ".endif",
            "mov {k}, qword ptr [{aside}]",
            "sub {k}, 4",
            "jb 4f",
            ".p2align 5",
            "3:",
            step!(0),
            step!(1),
            step!(2),
            step!(3),
            "add {p0}, 16",
            ".if {m1} > 0",
            "add {p1}, 16",
            ".endif",
            "add {b}, 128*{w}",
            "sub {k}, 4",
            "jae 3b",
            "4:",
            "add {k}, 4",
            "jz 6f",
            "5:",
            step!(0),
            "add {p0}, 4",
            ".if {m1} > 0",
            "add {p1}, 4",
            ".endif",
            "add {b}, 32*{w}",
            "dec {k}",
            "jnz 5b",
            "6:",
            "add {taps}, 8",
            "dec {count}",
            "jnz 2b",
            "7:",
            op = const OP,
            m0 = const M0,
            m1 = const M1,
            w = const W,
            taps = inout(reg) task.taps => _,
            count = inout(reg) task.tap_count => _,
            a0 = in(reg) task.a[0],
            a1 = in(reg) task.a[1],
            aside = in(reg) &raw const aside,
            b = inout(reg) task.b => _,
            ahead = inout(reg) task.asks() => _,
            ld = in(reg) ld,
            ld3 = in(reg) 3 * ld,
            ld5 = in(reg) 5 * ld,
            p0 = out(reg) _,
            p1 = out(reg) _,
            k = out(reg) _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _,
            out("zmm4") s[0][0], out("zmm5") s[0][1], out("zmm6") s[1][0], out("zmm7") s[1][1],
            out("zmm8") s[2][0], out("zmm9") s[2][1], out("zmm10") s[3][0], out("zmm11") s[3][1],
            out("zmm12") s[4][0], out("zmm13") s[4][1], out("zmm14") s[5][0], out("zmm15") s[5][1],
            out("zmm16") s[6][0], out("zmm17") s[6][1], out("zmm18") s[7][0], out("zmm19") s[7][1],
            out("zmm20") s[8][0], out("zmm21") s[8][1], out("zmm22") s[9][0], out("zmm23") s[9][1],
            out("zmm24") s[10][0], out("zmm25") s[10][1], out("zmm26") s[11][0], out("zmm27") s[11][1],
            out("zmm28") s[12][0], out("zmm29") s[12][1], out("zmm30") s[13][0], out("zmm31") s[13][1],
            options(readonly, nostack),
        );
        let to = buffer.0.as_mut_ptr().cast::<f32>();
        each_row!(S, {
            if const { (S < GROUP && S < M0) || (S >= GROUP && S < GROUP + M1) } {
                let i = const { if S < GROUP { S } else { M0 + S - GROUP } };
                _mm512_store_ps(to.add(i * SUMS), s[S][0]);
                if const { W > 2 } {
                    _mm512_store_ps(to.add(i * SUMS + LANES), s[S][1]);
                }
            }
        });
        leave(&task.target(), to, M0 + M1);
    }
}
