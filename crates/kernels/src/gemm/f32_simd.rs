//! Tiles over [`Simd`], for the levels without functions of their own: up to 6 rows by 16 columns where 32 registers hold the
//! sums, else 4 by 8.

use super::task::{Simple, Task, store_plain, store_rows};
use super::{Micro, TileFn};
use crate::simd::{Kernel, Simd, unroll};
use std::marker::PhantomData;

/// Most rows of a tile.
const ROWS: usize = 6;
/// Most vectors of a panel: 16 columns in fours.
const VECTORS: usize = 4;

pub(crate) struct Level<S>(PhantomData<S>);

impl<S: Simd> Level<S> {
    const LARGE: bool = S::REGISTERS >= 32;
    pub(crate) const MICRO: Micro = Micro {
        rows: if Self::LARGE { ROWS } else { 4 },
        pair_rows: if Self::LARGE { 3 } else { 2 },
        width: if Self::LARGE { 16 } else { 8 },
        grain: 8,
        resumes: true,
        unit: None,
        strip: None,
        tiles: [Self::tiles::<8>(), Self::tiles::<16>(), Self::tiles::<16>(), Self::tiles::<16>()],
        pairs: [Self::pairs::<8>(), Self::pairs::<16>(), Self::pairs::<16>(), Self::pairs::<16>()],
        skinny: [Self::few::<8>(), Self::few::<16>(), Self::few::<16>(), Self::few::<16>()],
        store: store_rows,
    };

    const fn tiles<const W: usize>() -> [TileFn; 15] {
        let last: TileFn = if Self::LARGE { S::call::<Rows<6, 0, W>> } else { S::call::<Rows<4, 0, W>> };
        let mut all = [last; 15];
        all[0] = S::call::<Rows<1, 0, W>>;
        all[1] = S::call::<Rows<1, 0, W>>;
        all[2] = S::call::<Rows<2, 0, W>>;
        all[3] = S::call::<Rows<3, 0, W>>;
        all[4] = S::call::<Rows<4, 0, W>>;
        if Self::LARGE {
            all[5] = S::call::<Rows<5, 0, W>>;
        }
        all
    }

    const fn pairs<const W: usize>() -> [TileFn; 8] {
        let last: TileFn = if Self::LARGE { S::call::<Rows<3, 3, W>> } else { S::call::<Rows<2, 2, W>> };
        let mut all = [last; 8];
        all[0] = S::call::<Rows<1, 1, W>>;
        all[1] = S::call::<Rows<1, 1, W>>;
        all[2] = S::call::<Rows<2, 2, W>>;
        all
    }

    const fn few<const W: usize>() -> [TileFn; 5] {
        [
            S::call::<Skinny<1, 2, W>>,
            S::call::<Skinny<1, 2, W>>,
            S::call::<Skinny<2, 2, W>>,
            S::call::<Skinny<3, 1, W>>,
            S::call::<Skinny<4, 1, W>>,
        ]
    }
}

/// `M0` rows from the first start, `M1` from the second, `W` columns.
struct Rows<const M0: usize, const M1: usize, const W: usize>;

impl<const M0: usize, const M1: usize, const W: usize> Kernel for Rows<M0, M1, W> {
    type Args<'a> = &'a Task;
    type Out = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(task: &Task) {
        // Not compiled for levels that have functions of their own.
        if const { S::N > 4 } {
            unreachable!("a level with tiles of its own");
        }
        let mut sums = [[S::splat(0.0); VECTORS]; ROWS];
        let mut aside = sums;
        let mut b = task.b;
        // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
        unsafe {
            for tap in 0..task.tap_count {
                if task.chunk_taps > 0 && tap > 0 && tap % task.chunk_taps == 0 {
                    add_sums(&mut aside, &sums);
                    sums = [[S::splat(0.0); VECTORS]; ROWS];
                }
                let offset = *task.taps.add(tap);
                let (mut p0, mut p1) = (task.a[0].add(offset), task.a[1].wrapping_add(offset));
                for _ in 0..task.depth {
                    let mut columns = [S::splat(0.0); VECTORS];
                    unroll!(v < W / S::N, 4, {
                        columns[v] = S::load(b.add(v * S::N));
                    });
                    unroll!(i < M0 + M1, [0 1 2 3 4 5] {
                        let row = if i < M0 { p0.add(i * task.lda) } else { p1.add((i - M0) * task.lda) };
                        let x = S::splat(*row);
                        unroll!(v < W / S::N, 4, { sums[i][v] = x.mul_add(columns[v], sums[i][v]); });
                    });
                    p0 = p0.add(1);
                    p1 = p1.wrapping_add(1);
                    b = b.add(W);
                }
            }
            if task.chunk_taps > 0 {
                add_sums(&mut sums, &aside);
            }
            store::<S, W>(task, M0 + M1, sums);
        }
    }
}

#[inline(always)]
fn add_sums<S: Simd>(to: &mut [[S; VECTORS]; ROWS], more: &[[S; VECTORS]; ROWS]) {
    unroll!(i < ROWS, [0 1 2 3 4 5] {
        unroll!(v < VECTORS, 4, { to[i][v] = to[i][v] + more[i][v]; });
    });
}

/// Few rows of a panel that may lie in a larger matrix: `U` sets of sums, so that the additions do not wait for one another.
struct Skinny<const M: usize, const U: usize, const W: usize>;

impl<const M: usize, const U: usize, const W: usize> Kernel for Skinny<M, U, W> {
    type Args<'a> = &'a Task;
    type Out = ();
    #[inline(always)]
    unsafe fn run<S: Simd>(task: &Task) {
        // Not compiled for levels that have functions of their own.
        if const { S::N > 4 } {
            unreachable!("a level with tiles of its own");
        }
        let mut more = [[[S::splat(0.0); VECTORS]; M]; U];
        let mut b = task.b;
        // SAFETY: as in `Rows`.
        unsafe {
            for tap in 0..task.tap_count {
                let mut p = task.a[0].add(*task.taps.add(tap));
                let mut k = task.depth;
                while k >= U {
                    unroll!(u < U, [0 1] {
                        unroll!(v < W / S::N, 4, {
                            let column = S::load(b.add(u * task.ldb + v * S::N));
                            unroll!(i < M, 4, {
                                more[u][i][v] = S::splat(*p.add(i * task.lda + u)).mul_add(column, more[u][i][v]);
                            });
                        });
                    });
                    p = p.add(U);
                    b = b.wrapping_add(U * task.ldb);
                    k -= U;
                }
                while k > 0 {
                    unroll!(v < W / S::N, 4, {
                        let column = S::load(b.add(v * S::N));
                        unroll!(i < M, 4, {
                            more[0][i][v] = S::splat(*p.add(i * task.lda)).mul_add(column, more[0][i][v]);
                        });
                    });
                    p = p.add(1);
                    b = b.wrapping_add(task.ldb);
                    k -= 1;
                }
            }
            let mut sums = [[S::splat(0.0); VECTORS]; ROWS];
            unroll!(i < M, 4, {
                unroll!(v < W / S::N, 4, {
                    sums[i][v] = more[0][i][v];
                    if U == 2 {
                        sums[i][v] = sums[i][v] + more[U - 1][i][v];
                    }
                });
            });
            store::<S, W>(task, M, sums);
        }
    }
}

/// Finishes the sums and stores them.
#[inline(always)]
unsafe fn store<S: Simd, const W: usize>(task: &Task, rows: usize, sums: [[S; VECTORS]; ROWS]) {
    // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile; a part of a panel goes through memory of ours.
    unsafe {
        if task.columns < W {
            let mut plain = [0.0f32; ROWS * 16];
            unroll!(i < ROWS, [0 1 2 3 4 5] {
                if i < rows {
                    unroll!(v < W / S::N, 4, { sums[i][v].store(plain.as_mut_ptr().add(i * W + v * S::N)); });
                }
            });
            return store_plain(task, plain.as_ptr(), rows, W);
        }
        let (zero, one, scale) = (S::splat(0.0), S::splat(1.0), S::splat(task.post.scale));
        let (p, q) = (S::splat(task.post.p), S::splat(task.post.q));
        unroll!(i < ROWS, [0 1 2 3 4 5] {
            if i < rows {
                unroll!(v < W / S::N, 4, {
                    let mut x = sums[i][v];
                    let to = task.c.add(i * task.ldc + v * S::N);
                    if task.resume {
                        x = x + S::load(to);
                    }
                    x = x * scale;
                    if !task.bias.is_null() {
                        x = x + S::load(task.bias.add(v * S::N));
                    }
                    let add = task.add.wrapping_add(i * task.ld_add + v * S::N);
                    if !task.add.is_null() && !task.post.add_last {
                        x = x + S::load(add);
                    }
                    // The number itself comes second in every comparison, so that NaN stays.
                    x = match task.post.simple {
                        Simple::None => x,
                        Simple::Relu => zero.max(x),
                        Simple::Clamp => q.min(p.max(x)),
                        Simple::Leaky => S::select(x.lt(zero), x * p, x),
                        Simple::HardSwish => x * one.min(zero.max(x.mul_add(p, q))),
                        Simple::HardSigmoid => one.min(zero.max(x.mul_add(p, q))),
                    };
                    if !task.add.is_null() && task.post.add_last {
                        x = x + S::load(add);
                    }
                    x.store(to);
                });
            }
        });
    }
}
