//! Tiles of up to 14 rows and 32 columns in AVX-512 registers: 28 sums, two vectors of `B`, and the rows of `A` broadcast
//! straight from where they lie. The loop is written out for the assembler, which leaves out the rows and columns that a tile
//! does not have: a compiler would move some of so many sums to the stack.
//!
//! `W` counts columns in eights: 1 is half a vector, 2 a whole one, 3 and 4 add half of a second one or all of it. A half is
//! worth its own code, because the processor does two of them in the time of a whole.

use super::task::{Simple, Task};
use super::{Micro, TileFn, each_row};
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

const ROWS: usize = 2 * GROUP;
/// Most rows from one start.
const GROUP: usize = 7;
const LANES: usize = 16;

pub(crate) static MICRO: Micro = Micro {
    rows: ROWS,
    pair_rows: 7,
    width: 32,
    grain: 8,
    resumes: true,
    unit: None,
    strip: Some(strip),
    tiles: [tiles::<1>(), tiles::<2>(), tiles::<3>(), tiles::<4>()],
    pairs: [pairs::<1>(), pairs::<2>(), pairs::<3>(), pairs::<4>()],
    skinny: [few::<1>(), few::<2>(), few::<3>(), few::<4>()],
    store: store_rows,
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
    [skinny::<1, 4, W>, skinny::<1, 4, W>, skinny::<2, 4, W>, skinny::<3, 2, W>, skinny::<4, 2, W>]
}

/// Sums of both groups of rows, each in its own half, and of both vectors of a row.
type Sums = [[__m512; 2]; ROWS];

/// One row of one step: multiply its number, broadcast, and add. `$m` is how many rows the group has, `$j` the row, `$at` its
/// address, `$s` and `$t` the registers of its sums. A number that is used once is broadcast by the multiplication itself.
macro_rules! row {
    ($m:literal, $j:literal, $at:literal, $u:literal, $s:literal, $t:literal) => {
        concat!(
            ".if {", $m, "} > ", $j, "\n",
            ".if {w} == 1\n",
            "vfmadd231ps ymm", $s, ", ymm0, dword ptr [", $at, "+4*", $u, "]{{1to8}}\n",
            ".endif\n",
            ".if {w} == 2\n",
            "vfmadd231ps zmm", $s, ", zmm0, dword ptr [", $at, "+4*", $u, "]{{1to16}}\n",
            ".endif\n",
            ".if {w} > 2\n",
            "vbroadcastss zmm2, dword ptr [", $at, "+4*", $u, "]\n",
            "vfmadd231ps zmm", $s, ", zmm2, zmm0\n",
            ".if {w} == 3\n",
            "vfmadd231ps ymm", $t, ", ymm2, ymm1\n",
            ".else\n",
            "vfmadd231ps zmm", $t, ", zmm2, zmm1\n",
            ".endif\n",
            ".endif\n",
            ".endif\n",
        )
    };
}

/// One step: row `$u` of the panel after `{b}`, and number `$u` of each row of `A`. Panels are asked for 40 steps ahead, which
/// is how long the second-level cache and beyond take; see [`Task::ask_for`] for what comes after them.
macro_rules! step {
    ($u:literal) => {
        concat!(
            "prefetcht1 byte ptr [{ahead}]\n",
            "add {ahead}, qword ptr [{aside}+32]\n",
            "prefetcht0 byte ptr [{b}+32*{w}*(40+",
            $u,
            ")]\n",
            ".if {w} > 2\n",
            "prefetcht0 byte ptr [{b}+32*{w}*(40+",
            $u,
            ")+64]\n",
            ".endif\n",
            ".if {w} == 1\n",
            "vmovups ymm0, ymmword ptr [{b}+32*{w}*",
            $u,
            "]\n",
            ".else\n",
            "vmovups zmm0, zmmword ptr [{b}+32*{w}*",
            $u,
            "]\n",
            ".endif\n",
            ".if {w} == 3\n",
            "vmovups ymm1, ymmword ptr [{b}+32*{w}*",
            $u,
            "+64]\n",
            ".endif\n",
            ".if {w} == 4\n",
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

/// Sets the sums of both vectors of a row to zero.
macro_rules! clear {
    ($($n:literal)*) => { concat!($("vpxord xmm", $n, ", xmm", $n, ", xmm", $n, "\n"),*) };
}

/// Sums of one row that are put aside, or what was put aside added to them: `$at` is the row of [`Aside`].
macro_rules! aside_row {
    (store, $m:literal, $j:literal, $at:literal, $s:literal, $t:literal) => {
        concat!(
            ".if {", $m, "} > ", $j, "\n",
            "vmovups zmmword ptr [{aside}+64+128*", $at, "], zmm", $s, "\n",
            "vpxord xmm", $s, ", xmm", $s, ", xmm", $s, "\n",
            ".if {w} > 2\n",
            "vmovups zmmword ptr [{aside}+128+128*", $at, "], zmm", $t, "\n",
            "vpxord xmm", $t, ", xmm", $t, ", xmm", $t, "\n",
            ".endif\n",
            ".endif\n",
        )
    };
    (add, $m:literal, $j:literal, $at:literal, $s:literal, $t:literal) => {
        concat!(
            ".if {", $m, "} > ", $j, "\n",
            "vaddps zmm", $s, ", zmm", $s, ", zmmword ptr [{aside}+64+128*", $at, "]\n",
            ".if {w} > 2\n",
            "vaddps zmm", $t, ", zmm", $t, ", zmmword ptr [{aside}+128+128*", $at, "]\n",
            ".endif\n",
            ".endif\n",
        )
    };
}
macro_rules! aside {
    ($what:ident) => {
        concat!(
            aside_row!($what, "m0", 0, 0, 4, 5),
            aside_row!($what, "m0", 1, 1, 6, 7),
            aside_row!($what, "m0", 2, 2, 8, 9),
            aside_row!($what, "m0", 3, 3, 10, 11),
            aside_row!($what, "m0", 4, 4, 12, 13),
            aside_row!($what, "m0", 5, 5, 14, 15),
            aside_row!($what, "m0", 6, 6, 16, 17),
            aside_row!($what, "m1", 0, 7, 18, 19),
            aside_row!($what, "m1", 1, 8, 20, 21),
            aside_row!($what, "m1", 2, 9, 22, 23),
            aside_row!($what, "m1", 3, 10, 24, 25),
            aside_row!($what, "m1", 4, 11, 26, 27),
            aside_row!($what, "m1", 5, 12, 28, 29),
            aside_row!($what, "m1", 6, 13, 30, 31),
        )
    };
}

/// What the loop of a tile keeps in memory. The assembler counts the bytes of its fields.
#[repr(C, align(64))]
struct Aside {
    /// Taps until sums are put aside, and how many that are in the whole.
    left: usize,
    every: usize,
    /// Whether there are sums in `sums`.
    some: usize,
    depth: usize,
    ahead_step: usize,
    unused: [usize; 3],
    sums: MaybeUninit<Sums>,
}

/// `M0` rows from the first start, `M1` from the second.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn tile<const M0: usize, const M1: usize, const W: usize>(task: &Task) {
    let mut s: Sums = [[_mm512_setzero_ps(); 2]; ROWS];
    let ld = task.lda * 4;
    let every = if task.chunk_taps == 0 { task.tap_count } else { task.chunk_taps };
    let sums = MaybeUninit::uninit();
    let (depth, ahead_step) = (task.depth, task.ahead_step);
    let mut aside = Aside { left: every, every, some: 0, depth, ahead_step, unused: [0; 3], sums };
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read. Only registers
    // named here and `aside` are written.
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
            "mov {k}, qword ptr [{aside}+24]",
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
            "jz 9f",
            "dec qword ptr [{aside}]",
            "jnz 2b",
            "cmp qword ptr [{aside}+16], 0",
            "je 8f",
            aside!(add),
            "8:",
            aside!(store),
            "mov qword ptr [{aside}+16], 1",
            "mov {k}, qword ptr [{aside}+8]",
            "mov qword ptr [{aside}], {k}",
            "jmp 2b",
            "9:",
            "cmp qword ptr [{aside}+16], 0",
            "je 7f",
            aside!(add),
            "7:",
            m0 = const M0,
            m1 = const M1,
            w = const W,
            taps = inout(reg) task.taps => _,
            count = inout(reg) task.tap_count => _,
            a0 = in(reg) task.a[0],
            a1 = in(reg) task.a[1],
            aside = in(reg) &raw mut aside,
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
            options(nostack),
        );
        store::<M0, M1, W>(task, &mut s);
    }
}

/// See [`super::StripFn`].
///
/// # Safety
/// As for [`super::StripFn`]; the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn strip(task: &Task, rows: usize) -> usize {
    let run: TileFn = match task.ldb / 8 {
        1 => tile::<GROUP, GROUP, 1>,
        2 => tile::<GROUP, GROUP, 2>,
        3 => tile::<GROUP, GROUP, 3>,
        _ => tile::<GROUP, GROUP, 4>,
    };
    let mut task = Task { ahead_step: 0, ..*task };
    for _ in 0..rows / ROWS {
        task.a[1] = task.a[0].wrapping_add(GROUP * task.lda);
        // SAFETY: the caller's promise, of a tile of the strip.
        unsafe { run(&task) };
        task.a[0] = task.a[0].wrapping_add(ROWS * task.lda);
        task.c = task.c.wrapping_add(ROWS * task.ldc);
        if !task.add.is_null() {
            task.add = task.add.wrapping_add(ROWS * task.ld_add);
        }
    }
    rows / ROWS * ROWS
}

/// Few rows: `U` sets of sums, so that the additions do not wait for one another.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn skinny<const M: usize, const U: usize, const W: usize>(task: &Task) {
    // SAFETY: as in `tile`.
    unsafe {
        let ld = task.lda;
        let mut b = task.b;
        let mut sums: Sums = [[_mm512_setzero_ps(); 2]; ROWS];
        let mut more = [[[_mm512_setzero_ps(); 2]; M]; U];
        for tap in 0..task.tap_count {
            let mut p = task.a[0].add(*task.taps.add(tap));
            let mut k = task.depth;
            while k >= U {
                for u in 0..U {
                    for v in 0..vectors(W) {
                        let at = b.add(u * task.ldb + v * LANES);
                        let b = load::<W>(v, at);
                        for i in 0..M {
                            let x = _mm512_set1_ps(*p.add(i * ld + u));
                            more[u][i][v] = _mm512_fmadd_ps(x, b, more[u][i][v]);
                        }
                    }
                }
                p = p.add(U);
                b = b.wrapping_add(U * task.ldb);
                k -= U;
            }
            while k > 0 {
                for v in 0..vectors(W) {
                    let b = load::<W>(v, b.add(v * LANES));
                    for i in 0..M {
                        more[0][i][v] = _mm512_fmadd_ps(_mm512_set1_ps(*p.add(i * ld)), b, more[0][i][v]);
                    }
                }
                p = p.add(1);
                b = b.wrapping_add(task.ldb);
                k -= 1;
            }
        }
        for i in 0..M {
            for v in 0..vectors(W) {
                sums[i][v] = more[0][i][v];
                for u in 1..U {
                    sums[i][v] = _mm512_add_ps(sums[i][v], more[u][i][v]);
                }
            }
        }
        store::<M, 0, W>(task, &mut sums);
    }
}

/// Vectors of sums a row has, the half one included.
const fn vectors(w: usize) -> usize {
    w.div_ceil(2)
}

/// Whether vector `v` of a row is a half one.
const fn is_half(w: usize, v: usize) -> bool {
    2 * v + 1 == w
}

/// Vector `v` of a whole row of a panel or of the output.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
unsafe fn load<const W: usize>(v: usize, at: *const f32) -> __m512 {
    // SAFETY: the caller promises the vector.
    unsafe { if is_half(W, v) { _mm512_zextps256_ps512(_mm256_loadu_ps(at)) } else { _mm512_loadu_ps(at) } }
}

/// Finishes the sums and stores them: what is usual in registers, the rest by way of memory.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
unsafe fn store<const M0: usize, const M1: usize, const W: usize>(task: &Task, sums: &mut Sums) {
    // Runs an expression for every vector of sums, with its row, its place in the row, and its value, which it replaces.
    macro_rules! all {
        ($i:ident, $v:ident, $x:ident, $value:expr) => {
            each_row!(S, {
                if const { (S < GROUP && S < M0) || (S >= GROUP && S < GROUP + M1) } {
                    let $i = const { if S < GROUP { S } else { M0 + S - GROUP } };
                    {
                        const $v: usize = 0;
                        let $x = sums[S][$v];
                        sums[S][$v] = $value;
                    }
                    if const { W > 2 } {
                        const $v: usize = 1;
                        let $x = sums[S][$v];
                        sums[S][$v] = $value;
                    }
                }
            })
        };
    }
    let usual = task.post.simple != Simple::HardSigmoid
        && task.columns.div_ceil(LANES) == vectors(W)
        && !task.resume
        && (task.add.is_null() || !task.post.add_last);
    // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile.
    unsafe {
        if !usual {
            let mut kept = [[0.0f32; 2 * LANES]; ROWS];
            all!(i, V, x, {
                _mm512_storeu_ps(kept[i].as_mut_ptr().add(V * LANES), x);
                x
            });
            return store_rows(task, kept.as_ptr().cast(), M0 + M1);
        }
        let whole = task.columns == 8 * W;
        // Lanes of the last vector that are there.
        let last = ((1u32 << (task.columns - (vectors(W) - 1) * LANES)) - 1) as u16;
        // Vector `v` of a row at `at`, as far as it is there.
        macro_rules! get {
            ($v:expr, $at:expr) => {
                if const { $v + 1 < vectors(W) } || whole {
                    load::<W>($v, $at)
                } else {
                    _mm512_maskz_loadu_ps(last, $at)
                }
            };
        }
        if task.post.scale != 1.0 {
            let scale = _mm512_set1_ps(task.post.scale);
            all!(_i, _V, x, _mm512_mul_ps(x, scale));
        }
        if !task.bias.is_null() {
            let first = get!(0, task.bias);
            let bias = [first, if W > 2 { get!(1, task.bias.add(LANES)) } else { first }];
            all!(_i, V, x, _mm512_add_ps(x, bias[V]));
        }
        if !task.add.is_null() {
            all!(i, V, x, _mm512_add_ps(x, get!(V, task.add.add(i * task.ld_add + V * LANES))));
        }
        let (p, q) = (_mm512_set1_ps(task.post.p), _mm512_set1_ps(task.post.q));
        let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
        // The number itself comes second in every comparison, so that NaN stays.
        match task.post.simple {
            Simple::None | Simple::HardSigmoid => {}
            Simple::Relu => all!(_i, _V, x, _mm512_max_ps(zero, x)),
            Simple::Clamp => all!(_i, _V, x, _mm512_min_ps(q, _mm512_max_ps(p, x))),
            Simple::Leaky => {
                all!(_i, _V, x, _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, zero), x, p))
            }
            Simple::HardSwish => {
                all!(_i, _V, x, {
                    let y = _mm512_fmadd_ps(x, p, q);
                    _mm512_mul_ps(x, _mm512_min_ps(one, _mm512_max_ps(zero, y)))
                })
            }
        }
        all!(i, V, x, {
            let at = task.c.add(i * task.ldc + V * LANES);
            if const { V + 1 == vectors(W) } && !whole {
                _mm512_mask_storeu_ps(at, last, x);
            } else if const { is_half(W, V) } {
                _mm256_storeu_ps(at, _mm512_castps512_ps256(x));
            } else {
                _mm512_storeu_ps(at, x);
            }
            x
        });
    }
}

/// Finishes and stores rows of 32 sums that were kept in memory.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline(never)]
unsafe fn store_rows(task: &Task, kept: *const f32, rows: usize) {
    let (zero, one) = (_mm512_setzero_ps(), _mm512_set1_ps(1.0));
    let (p, q) = (_mm512_set1_ps(task.post.p), _mm512_set1_ps(task.post.q));
    let scale = _mm512_set1_ps(task.post.scale);
    for i in 0..rows {
        for v in 0..task.columns.div_ceil(LANES) {
            let left = task.columns - v * LANES;
            let mask = if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 };
            // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile; the mask leaves out what lies beyond.
            unsafe {
                let mut x = _mm512_loadu_ps(kept.add((2 * i + v) * LANES));
                let at = task.c.add(i * task.ldc + v * LANES);
                if task.resume {
                    x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, at));
                }
                x = _mm512_mul_ps(x, scale);
                if !task.bias.is_null() {
                    x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, task.bias.add(v * LANES)));
                }
                let mut add = zero;
                if !task.add.is_null() {
                    add = _mm512_maskz_loadu_ps(mask, task.add.add(i * task.ld_add + v * LANES));
                    if !task.post.add_last {
                        x = _mm512_add_ps(x, add);
                    }
                }
                let line = _mm512_fmadd_ps(x, p, q);
                // The number itself comes second in every comparison, so that NaN stays.
                x = match task.post.simple {
                    Simple::None => x,
                    Simple::Relu => _mm512_max_ps(zero, x),
                    Simple::Clamp => _mm512_min_ps(q, _mm512_max_ps(p, x)),
                    Simple::Leaky => _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, zero), x, p),
                    Simple::HardSwish => _mm512_mul_ps(x, _mm512_min_ps(one, _mm512_max_ps(zero, line))),
                    Simple::HardSigmoid => _mm512_min_ps(one, _mm512_max_ps(zero, line)),
                };
                if !task.add.is_null() && task.post.add_last {
                    x = _mm512_add_ps(x, add);
                }
                if mask == 0xffff {
                    _mm512_storeu_ps(at, x);
                } else {
                    _mm512_mask_storeu_ps(at, mask, x);
                }
            }
        }
    }
}
