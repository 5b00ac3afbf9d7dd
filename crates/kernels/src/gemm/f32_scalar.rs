//! Tiles of up to 4 rows and 8 columns in plain Rust, which the compiler turns into whatever vectors the target has.

use super::task::{Task, store_plain, store_rows};
use super::{Micro, TileFn};

const WIDTH: usize = 8;

pub(crate) static MICRO: Micro = Micro {
    rows: 4,
    pair_rows: 2,
    width: WIDTH,
    tiles: [TILES; 4],
    pairs: [PAIRS; 4],
    skinny: [[tile::<1, 0>, tile::<1, 0>, tile::<2, 0>, tile::<3, 0>, tile::<4, 0>]; 4],
    store: store_rows,
};

const TILES: [TileFn; 15] = {
    let last: TileFn = tile::<4, 0>;
    let mut all = [last; 15];
    all[0] = tile::<1, 0>;
    all[1] = tile::<1, 0>;
    all[2] = tile::<2, 0>;
    all[3] = tile::<3, 0>;
    all
};

const PAIRS: [TileFn; 8] = {
    let last: TileFn = tile::<2, 2>;
    let mut all = [last; 8];
    all[0] = tile::<1, 1>;
    all[1] = tile::<1, 1>;
    all
};

unsafe fn tile<const M0: usize, const M1: usize>(task: &Task) {
    let mut sums = [[0.0f32; WIDTH]; 4];
    let mut b = task.b;
    for tap in 0..task.tap_count {
        // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
        unsafe {
            let offset = *task.taps.add(tap);
            for k in 0..task.depth {
                let b_row = &*b.cast::<[f32; WIDTH]>();
                for i in 0..M0 + M1 {
                    let start = if i < M0 { task.a[0].add(i * task.lda) } else { task.a[1].add((i - M0) * task.lda) };
                    let x = *start.add(offset + k);
                    for j in 0..WIDTH {
                        sums[i][j] += x * b_row[j];
                    }
                }
                b = b.add(WIDTH);
            }
        }
    }
    // SAFETY: the caller promises that `c`, `bias` and `add` hold the tile.
    unsafe { store_plain(task, sums.as_ptr().cast(), M0 + M1, WIDTH) }
}
