//! Tiles of up to 14 rows and 32 columns in AVX-512 registers: 28 sums, two vectors of `B`, and the rows of `A` broadcast
//! straight from where they lie. Every index of the sums is a literal, or they would end up on the stack.

use super::task::{Simple, Task};
use super::{Micro, TileFn, each_row, opaque};
use std::arch::x86_64::*;

const ROWS: usize = 14;
const LANES: usize = 16;
/// Rows of the panel that are asked for ahead: what the first-level cache misses takes as long to come.
const AHEAD: usize = 24;

pub(crate) static MICRO: Micro = Micro {
    rows: ROWS,
    pair_rows: 7,
    width: 32,
    narrow: 16,
    tiles: [tiles::<1>(), tiles::<2>()],
    pairs: [pairs::<1>(), pairs::<2>()],
    skinny: [
        [tile::<1, 0, 1>, skinny::<1, 4, 1>, skinny::<2, 4, 1>, skinny::<3, 2, 1>, skinny::<4, 2, 1>],
        [tile::<1, 0, 2>, skinny::<1, 4, 2>, skinny::<2, 4, 2>, skinny::<3, 2, 2>, skinny::<4, 2, 2>],
    ],
};

const fn tiles<const V: usize>() -> [TileFn; 15] {
    [
        tile::<1, 0, V>,
        tile::<1, 0, V>,
        tile::<2, 0, V>,
        tile::<3, 0, V>,
        tile::<4, 0, V>,
        tile::<5, 0, V>,
        tile::<6, 0, V>,
        tile::<7, 0, V>,
        tile::<7, 1, V>,
        tile::<7, 2, V>,
        tile::<7, 3, V>,
        tile::<7, 4, V>,
        tile::<7, 5, V>,
        tile::<7, 6, V>,
        tile::<7, 7, V>,
    ]
}

const fn pairs<const V: usize>() -> [TileFn; 8] {
    [
        tile::<1, 1, V>,
        tile::<1, 1, V>,
        tile::<2, 2, V>,
        tile::<3, 3, V>,
        tile::<4, 4, V>,
        tile::<5, 5, V>,
        tile::<6, 6, V>,
        tile::<7, 7, V>,
    ]
}

/// `M0` rows from the first start, `M1` from the second, `V` vectors of columns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn tile<const M0: usize, const M1: usize, const V: usize>(task: &Task) {
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
    unsafe {
        let ld = opaque(task.lda * 4);
        let ld3 = opaque(ld * 3);
        let ld5 = opaque(ld * 5);
        let mut b = task.b;
        let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
        for tap in 0..task.tap_count {
            let offset = *task.taps.add(tap);
            let mut p0 = task.a[0].add(offset).cast::<u8>();
            let mut p1 = task.a[1].wrapping_add(offset).cast::<u8>();
            macro_rules! step {
                ($u:literal) => {
                    for v in 0..V {
                        let ahead = b.wrapping_add(($u * V + v) * LANES + AHEAD * V * LANES);
                        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                    }
                    let b0 = _mm512_loadu_ps(b.add($u * LANES * V));
                    let b1 = if V == 2 { _mm512_loadu_ps(b.add($u * LANES * V + LANES)) } else { b0 };
                    each_row!(I, {
                        if I < M0 + M1 {
                            let (p, j) = if I < M0 { (p0, I) } else { (p1, I - M0) };
                            let row = match j {
                                0 => p,
                                1 => p.add(ld),
                                2 => p.add(ld * 2),
                                3 => p.add(ld3),
                                4 => p.add(ld * 4),
                                5 => p.add(ld5),
                                _ => p.add(ld3 * 2),
                            };
                            let x = _mm512_set1_ps(*row.cast::<f32>().add($u));
                            sums[I][0] = _mm512_fmadd_ps(x, b0, sums[I][0]);
                            if V == 2 {
                                sums[I][V - 1] = _mm512_fmadd_ps(x, b1, sums[I][V - 1]);
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
        store::<M0, M1, V>(task, &mut sums);
    }
}

/// Few rows: `U` sets of sums, so that the additions do not wait for one another, and the panel is asked for ahead.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn skinny<const M: usize, const U: usize, const V: usize>(task: &Task) {
    // SAFETY: as in `tile`.
    unsafe {
        let ld = task.lda;
        let mut b = task.b;
        let mut sums = [[_mm512_setzero_ps(); V]; ROWS];
        let mut more = [[[_mm512_setzero_ps(); V]; M]; U];
        for tap in 0..task.tap_count {
            let mut p = task.a[0].add(*task.taps.add(tap));
            let mut k = task.depth;
            while k >= U {
                for u in 0..U {
                    for v in 0..V {
                        let at = b.add((u * V + v) * LANES);
                        _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(1024).cast());
                        let b = _mm512_loadu_ps(at);
                        for i in 0..M {
                            let x = _mm512_set1_ps(*p.add(i * ld + u));
                            more[u][i][v] = _mm512_fmadd_ps(x, b, more[u][i][v]);
                        }
                    }
                }
                p = p.add(U);
                b = b.add(U * V * LANES);
                k -= U;
            }
            while k > 0 {
                for v in 0..V {
                    let b = _mm512_loadu_ps(b.add(v * LANES));
                    for i in 0..M {
                        more[0][i][v] = _mm512_fmadd_ps(_mm512_set1_ps(*p.add(i * ld)), b, more[0][i][v]);
                    }
                }
                p = p.add(1);
                b = b.add(V * LANES);
                k -= 1;
            }
        }
        for i in 0..M {
            for v in 0..V {
                let mut sum = more[0][i][v];
                for u in 1..U {
                    sum = _mm512_add_ps(sum, more[u][i][v]);
                }
                sums[i][v] = sum;
            }
        }
        store::<M, 0, V>(task, &mut sums);
    }
}

/// Finishes the sums and stores them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
#[inline]
unsafe fn store<const M0: usize, const M1: usize, const V: usize>(task: &Task, sums: &mut [[__m512; V]; ROWS]) {
    // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile; what lies beyond its columns is masked out.
    unsafe {
        let zero = _mm512_setzero_ps();
        let whole = task.columns >= LANES * V;
        let mask = |v: usize| -> __mmask16 {
            let left = task.columns.saturating_sub(v * LANES);
            if left >= LANES { 0xffff } else { ((1u32 << left) - 1) as u16 }
        };
        let masks = [mask(0), mask(1)];
        macro_rules! all {
            ($i:ident, $v:ident, $x:ident, $value:expr) => {
                each_row!($i, {
                    if $i < M0 + M1 {
                        {
                            const $v: usize = 0;
                            let $x = sums[$i][$v];
                            sums[$i][$v] = $value;
                        }
                        if V == 2 {
                            const $v: usize = 1;
                            let $x = sums[$i][V - 1];
                            sums[$i][V - 1] = $value;
                        }
                    }
                })
            };
        }
        macro_rules! add {
            () => {
                if whole {
                    all!(I, J, x, _mm512_add_ps(x, _mm512_loadu_ps(task.add.add(I * task.ld_add + J * LANES))))
                } else {
                    all!(I, J, x, {
                        let at = task.add.wrapping_add(I * task.ld_add + J * LANES);
                        _mm512_add_ps(x, _mm512_maskz_loadu_ps(masks[J], at))
                    })
                }
            };
        }
        if task.post.scale != 1.0 {
            let scale = _mm512_set1_ps(task.post.scale);
            all!(I, _J, x, _mm512_mul_ps(x, scale));
        }
        if !task.bias.is_null() {
            let bias = [0, 1].map(|v| _mm512_maskz_loadu_ps(masks[v], task.bias.wrapping_add(v * LANES)));
            all!(I, J, x, _mm512_add_ps(x, bias[J]));
        }
        if !task.add.is_null() && !task.post.add_last {
            add!();
        }
        if task.post.simple != Simple::None {
            let (p, q) = (_mm512_set1_ps(task.post.p), _mm512_set1_ps(task.post.q));
            let one = _mm512_set1_ps(1.0);
            // The number itself comes second in every comparison, so that NaN stays.
            match task.post.simple {
                Simple::None => {}
                Simple::Relu => all!(I, _J, x, _mm512_max_ps(zero, x)),
                Simple::Clamp => all!(I, _J, x, _mm512_min_ps(q, _mm512_max_ps(p, x))),
                Simple::Leaky => {
                    all!(I, _J, x, _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, zero), x, p))
                }
                Simple::HardSwish => all!(I, _J, x, {
                    let y = _mm512_fmadd_ps(x, p, q);
                    _mm512_mul_ps(x, _mm512_min_ps(one, _mm512_max_ps(zero, y)))
                }),
                Simple::HardSigmoid => all!(I, _J, x, {
                    let y = _mm512_fmadd_ps(x, p, q);
                    _mm512_min_ps(one, _mm512_max_ps(zero, y))
                }),
            }
        }
        if !task.add.is_null() && task.post.add_last {
            add!();
        }
        if whole {
            all!(I, J, x, {
                _mm512_storeu_ps(task.c.add(I * task.ldc + J * LANES), x);
                x
            });
        } else {
            all!(I, J, x, {
                _mm512_mask_storeu_ps(task.c.wrapping_add(I * task.ldc + J * LANES), masks[J], x);
                x
            });
        }
    }
}
