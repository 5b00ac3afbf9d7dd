//! Tiles of up to 6 rows and 16 columns in AVX2 registers: 12 sums, two vectors of `B`, one broadcast number of `A`.

use super::task::{Simple, Task, store_plain, store_rows};
use super::{Micro, TileFn, each_row, opaque};
use std::arch::x86_64::*;

const ROWS: usize = 6;
const LANES: usize = 8;
/// Rows of the panel that are asked for ahead: as long as what the first-level cache misses takes to come.
const AHEAD: usize = 40;

pub(crate) static MICRO: Micro = Micro {
    rows: ROWS,
    pair_rows: 3,
    width: 16,
    grain: 8,
    resumes: true,
    unit: None,
    strip: None,
    tiles: [tiles::<1>(), tiles::<2>(), tiles::<2>(), tiles::<2>()],
    pairs: [pairs::<1>(), pairs::<2>(), pairs::<2>(), pairs::<2>()],
    skinny: [few::<1>(), few::<2>(), few::<2>(), few::<2>()],
    store: store_rows,
};

const fn few<const V: usize>() -> [TileFn; 5] {
    [skinny::<1, 4, V>, skinny::<1, 4, V>, skinny::<2, 2, V>, skinny::<3, 2, V>, skinny::<4, 1, V>]
}

const fn tiles<const V: usize>() -> [TileFn; 15] {
    let last: TileFn = tile::<6, 0, V>;
    let mut all = [last; 15];
    let first: [TileFn; 6] =
        [tile::<1, 0, V>, tile::<1, 0, V>, tile::<2, 0, V>, tile::<3, 0, V>, tile::<4, 0, V>, tile::<5, 0, V>];
    let mut i = 0;
    while i < 6 {
        all[i] = first[i];
        i += 1;
    }
    all
}

const fn pairs<const V: usize>() -> [TileFn; 8] {
    let last: TileFn = tile::<3, 3, V>;
    let mut all = [last; 8];
    all[0] = tile::<1, 1, V>;
    all[1] = tile::<1, 1, V>;
    all[2] = tile::<2, 2, V>;
    all
}

/// `M0` rows from the first start, `M1` from the second, `V` vectors of columns.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const M0: usize, const M1: usize, const V: usize>(task: &Task) {
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
    unsafe {
        let ld = opaque(task.lda * 4);
        let ld3 = opaque(ld * 3);
        let ld5 = opaque(ld * 5);
        let mut b = task.b;
        let mut sums = [[_mm256_setzero_ps(); V]; ROWS];
        let mut aside = [[_mm256_setzero_ps(); V]; ROWS];
        for tap in 0..task.tap_count {
            if task.chunk_taps > 0 && tap > 0 && tap % task.chunk_taps == 0 {
                add_sums(&mut aside, &sums);
                sums = [[_mm256_setzero_ps(); V]; ROWS];
            }
            let offset = *task.taps.add(tap);
            let mut p0 = task.a[0].add(offset).cast::<u8>();
            let mut p1 = task.a[1].wrapping_add(offset).cast::<u8>();
            macro_rules! step {
                ($u:literal) => {
                    _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(($u + AHEAD) * LANES * V).cast());
                    let b0 = _mm256_loadu_ps(b.add($u * LANES * V));
                    let b1 = if V == 2 { _mm256_loadu_ps(b.add($u * LANES * V + LANES)) } else { b0 };
                    each_row!(I, {
                        if const { I < ROWS && I < M0 + M1 } {
                            let p = if const { I < M0 } { p0 } else { p1 };
                            let row = match const { if I < M0 { I } else { I - M0 } } {
                                0 => p,
                                1 => p.add(ld),
                                2 => p.add(ld * 2),
                                3 => p.add(ld3),
                                4 => p.add(ld * 4),
                                _ => p.add(ld5),
                            };
                            let x = _mm256_set1_ps(*row.cast::<f32>().add($u));
                            sums[I % ROWS][0] = _mm256_fmadd_ps(x, b0, sums[I % ROWS][0]);
                            if const { V == 2 } {
                                sums[I % ROWS][V - 1] = _mm256_fmadd_ps(x, b1, sums[I % ROWS][V - 1]);
                            }
                        }
                    });
                };
            }
            let mut k = task.depth;
            while k >= 4 {
                step!(0);
                step!(1);
                step!(2);
                step!(3);
                p0 = p0.add(16);
                p1 = p1.wrapping_add(16);
                b = b.add(4 * LANES * V);
                k -= 4;
            }
            while k > 0 {
                step!(0);
                p0 = p0.add(4);
                p1 = p1.wrapping_add(4);
                b = b.add(LANES * V);
                k -= 1;
            }
        }
        if task.chunk_taps > 0 {
            add_sums(&mut sums, &aside);
        }
        store::<M0, M1, V>(task, &mut sums);
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn add_sums<const V: usize>(to: &mut [[__m256; V]; ROWS], more: &[[__m256; V]; ROWS]) {
    for (to, more) in to.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
        *to = _mm256_add_ps(*to, *more);
    }
}

/// Few rows: `U` sets of sums, so that the additions do not wait for one another.
#[target_feature(enable = "avx2,fma")]
unsafe fn skinny<const M: usize, const U: usize, const V: usize>(task: &Task) {
    // SAFETY: as in `tile`.
    unsafe {
        let ld = task.lda;
        let mut b = task.b;
        let mut sums = [[_mm256_setzero_ps(); V]; ROWS];
        let mut more = [[[_mm256_setzero_ps(); V]; M]; U];
        for tap in 0..task.tap_count {
            let mut p = task.a[0].add(*task.taps.add(tap));
            let mut k = task.depth;
            while k >= U {
                for u in 0..U {
                    for v in 0..V {
                        let at = b.add(u * task.ldb + v * LANES);
                        let b = _mm256_loadu_ps(at);
                        for i in 0..M {
                            let x = _mm256_set1_ps(*p.add(i * ld + u));
                            more[u][i][v] = _mm256_fmadd_ps(x, b, more[u][i][v]);
                        }
                    }
                }
                p = p.add(U);
                b = b.wrapping_add(U * task.ldb);
                k -= U;
            }
            while k > 0 {
                for v in 0..V {
                    let b = _mm256_loadu_ps(b.add(v * LANES));
                    for i in 0..M {
                        more[0][i][v] = _mm256_fmadd_ps(_mm256_set1_ps(*p.add(i * ld)), b, more[0][i][v]);
                    }
                }
                p = p.add(1);
                b = b.wrapping_add(task.ldb);
                k -= 1;
            }
        }
        for i in 0..M {
            for v in 0..V {
                sums[i][v] = more[0][i][v];
                for u in 1..U {
                    sums[i][v] = _mm256_add_ps(sums[i][v], more[u][i][v]);
                }
            }
        }
        store::<M, 0, V>(task, &mut sums);
    }
}

/// Finishes the sums and stores them.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn store<const M0: usize, const M1: usize, const V: usize>(task: &Task, sums: &mut [[__m256; V]; ROWS]) {
    // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile; a part of a panel goes through memory of ours.
    unsafe {
        if task.columns < LANES * V {
            let mut plain = [0.0f32; ROWS * LANES * 2];
            each_row!(I, {
                if const { I < ROWS && I < M0 + M1 } {
                    for v in 0..V {
                        _mm256_storeu_ps(plain.as_mut_ptr().add((I * V + v) * LANES), sums[I % ROWS][v]);
                    }
                }
            });
            store_plain(task, plain.as_ptr(), M0 + M1, LANES * V);
            return;
        }
        let zero = _mm256_setzero_ps();
        macro_rules! all {
            ($i:ident, $v:ident, $x:ident, $value:expr) => {
                each_row!($i, {
                    if const { $i < ROWS && $i < M0 + M1 } {
                        {
                            const $v: usize = 0;
                            let $x = sums[$i % ROWS][$v];
                            sums[$i % ROWS][$v] = $value;
                        }
                        if const { V == 2 } {
                            const $v: usize = 1;
                            let $x = sums[$i % ROWS][V - 1];
                            sums[$i % ROWS][V - 1] = $value;
                        }
                    }
                })
            };
        }
        macro_rules! add {
            () => {
                all!(I, J, x, _mm256_add_ps(x, _mm256_loadu_ps(task.add.add(I * task.ld_add + J * LANES))))
            };
        }
        if task.resume {
            all!(I, J, x, _mm256_add_ps(x, _mm256_loadu_ps(task.c.add(I * task.ldc + J * LANES))));
        }
        if task.post.scale != 1.0 {
            let scale = _mm256_set1_ps(task.post.scale);
            all!(I, _J, x, _mm256_mul_ps(x, scale));
        }
        if !task.bias.is_null() {
            let low = _mm256_loadu_ps(task.bias);
            let bias = [low, if V == 2 { _mm256_loadu_ps(task.bias.add(LANES)) } else { low }];
            all!(I, J, x, _mm256_add_ps(x, bias[J]));
        }
        if !task.add.is_null() && !task.post.add_last {
            add!();
        }
        if task.post.simple != Simple::None {
            let (p, q) = (_mm256_set1_ps(task.post.p), _mm256_set1_ps(task.post.q));
            let one = _mm256_set1_ps(1.0);
            // The number itself comes second in every comparison, so that NaN stays.
            match task.post.simple {
                Simple::None => {}
                Simple::Relu => all!(I, _J, x, _mm256_max_ps(zero, x)),
                Simple::Clamp => all!(I, _J, x, _mm256_min_ps(q, _mm256_max_ps(p, x))),
                Simple::Leaky => {
                    all!(I, _J, x, _mm256_blendv_ps(x, _mm256_mul_ps(x, p), _mm256_cmp_ps::<_CMP_LT_OQ>(x, zero)))
                }
                Simple::HardSwish => all!(I, _J, x, {
                    let y = _mm256_fmadd_ps(x, p, q);
                    _mm256_mul_ps(x, _mm256_min_ps(one, _mm256_max_ps(zero, y)))
                }),
                Simple::HardSigmoid => all!(I, _J, x, {
                    let y = _mm256_fmadd_ps(x, p, q);
                    _mm256_min_ps(one, _mm256_max_ps(zero, y))
                }),
            }
        }
        if !task.add.is_null() && task.post.add_last {
            add!();
        }
        all!(I, J, x, {
            _mm256_storeu_ps(task.c.add(I * task.ldc + J * LANES), x);
            x
        });
    }
}
