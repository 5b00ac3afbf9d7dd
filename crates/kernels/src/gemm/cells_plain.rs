//! Tiles of cells in plain Rust: does exactly what the instructions of other levels do, so that packing, tails and epilogues are
//! tested on every machine.

use super::cells::row_of;
use super::leave::{SUMS, leave_plain};
use super::task::{Task, store_rows};
use super::{Micro, TileFn};
use crate::cast::{Half, half_to_f32};

const ROWS: usize = 14;
const GROUP: usize = 7;

pub(crate) static F32: Micro = micro::<0>();
pub(crate) static BF16: Micro = micro::<1>();
pub(crate) static U8I8: Micro = micro::<2>();
pub(crate) static F16: Micro = micro::<3>();

pub(super) const fn micro<const OP: usize>() -> Micro {
    Micro {
        rows: ROWS,
        pair_rows: GROUP,
        width: SUMS,
        grain: 16,
        resumes: false,
        unit: None,
        strip: None,
        tiles: [tiles::<OP>(); 4],
        pairs: [pairs::<OP>(); 4],
        skinny: [few::<OP>(); 4],
        store: store_rows,
    }
}

const fn tiles<const OP: usize>() -> [TileFn; 15] {
    [
        tile::<OP, 1, 0>,
        tile::<OP, 1, 0>,
        tile::<OP, 2, 0>,
        tile::<OP, 3, 0>,
        tile::<OP, 4, 0>,
        tile::<OP, 5, 0>,
        tile::<OP, 6, 0>,
        tile::<OP, 7, 0>,
        tile::<OP, 7, 1>,
        tile::<OP, 7, 2>,
        tile::<OP, 7, 3>,
        tile::<OP, 7, 4>,
        tile::<OP, 7, 5>,
        tile::<OP, 7, 6>,
        tile::<OP, 7, 7>,
    ]
}

const fn pairs<const OP: usize>() -> [TileFn; 8] {
    [
        tile::<OP, 1, 1>,
        tile::<OP, 1, 1>,
        tile::<OP, 2, 2>,
        tile::<OP, 3, 3>,
        tile::<OP, 4, 4>,
        tile::<OP, 5, 5>,
        tile::<OP, 6, 6>,
        tile::<OP, 7, 7>,
    ]
}

const fn few<const OP: usize>() -> [TileFn; 5] {
    [tile::<OP, 1, 0>, tile::<OP, 1, 0>, tile::<OP, 2, 0>, tile::<OP, 3, 0>, tile::<OP, 4, 0>]
}

unsafe fn tile<const OP: usize, const M0: usize, const M1: usize>(task: &Task) {
    // SAFETY: the caller's promise is passed on.
    unsafe { product::<OP>(task, M0, M0 + M1) }
}

// `OP` says what a cell holds: 0 a float, 1 two bf16, 2 four integers, 3 two f16.
unsafe fn product<const OP: usize>(task: &Task, first: usize, rows: usize) {
    let mut sums = [0f32; ROWS * SUMS];
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read.
    unsafe {
        for i in 0..rows {
            let row = row_of(task, i, first);
            let mut b = task.b;
            for tap in 0..task.tap_count {
                let a = row.add(*task.taps.add(tap));
                for k in 0..task.depth {
                    let x = (*a.add(k)).to_bits();
                    for j in 0..task.columns {
                        let (y, sum) = ((*b.add(j)).to_bits(), &mut sums[i * SUMS + j]);
                        *sum = multiply::<OP>(x, y, *sum);
                    }
                    b = b.add(task.ldb);
                }
            }
        }
        leave_plain(&task.target(), sums.as_mut_ptr(), rows);
    }
}

#[inline(always)]
fn multiply<const OP: usize>(x: u32, y: u32, sum: f32) -> f32 {
    let half = |v: u32, high: bool| f32::from_bits(if high { v & 0xffff_0000 } else { v << 16 });
    match OP {
        0 => f32::from_bits(x).mul_add(f32::from_bits(y), sum),
        1 => {
            let sum = half(x, true).mul_add(half(y, true), sum);
            half(x, false).mul_add(half(y, false), sum)
        }
        3 => {
            let number = |v: u32| half_to_f32(Half(v as u16));
            number(x >> 16).mul_add(number(y >> 16), number(x).mul_add(number(y), sum))
        }
        _ => {
            let (x, y) = (x.to_le_bytes(), y.to_le_bytes());
            let dot: i32 = (0..4).map(|i| i32::from(x[i]) * i32::from(y[i] as i8)).sum();
            f32::from_bits((sum.to_bits() as i32).wrapping_add(dot) as u32)
        }
    }
}
