//! One tile of a product on a unit of tile registers.
//!
//! Sums of any length are taken without a copy of their end: steps are shortened evenly where that costs few steps more, as 20
//! cells are two steps of 10, and otherwise the end has tile registers of its own size. A copy filled up with zeros would be
//! made anew for each tap and tile, and a new configuration in the middle would clear the sums.

use super::chunk::{self, Behind, Chunk};
use super::{SIDE, Shape, Unit};
use crate::gemm::leave::SUMS;
use crate::gemm::task::Task;
use crate::gemm::{opaque, opaque_pointer};

/// The tile of a task, whose `ldb` is the width of its panel: 16 or 32 columns. Its sums leave with the next tile of the chunk.
pub(super) unsafe fn tile<U: Unit, const OP: usize>(task: &Task) {
    // SAFETY: the caller of a micro kernel promises that every row, tap and panel of the task may be read, and that the level
    // of the table is there. A chunk lives as long as it is the thread's.
    unsafe {
        match U::chunk().get().as_ref() {
            Some(chunk) => within::<U, OP>(task, chunk),
            None => chunk::around::<U>(&mut || within::<U, OP>(task, &*U::chunk().get())),
        }
    }
}

unsafe fn within<U: Unit, const OP: usize>(task: &Task, chunk: &Chunk) {
    // One by one: see `Waiting`.
    let rows = [opaque(task.rows[0]), opaque(task.rows[1])];
    let (tall, wide) = (rows[1] > 0, task.ldb > SIDE);
    let steps = Steps::of(task.depth);
    let (to, mut behind) = chunk.next(task.tap_count * steps.count());
    let mut ahead = Ahead::of(task, steps);
    // SAFETY: the caller's promise; there is room for 32 by 32 sums.
    unsafe {
        match steps {
            Steps::Even { count, step } => {
                chunk.configure::<U>(Shape::Square { rows: [rows[0] as u8, rows[1] as u8], wide, step: step as u8 });
                let run = match (tall, wide, task.rows_stay) {
                    (false, false, _) => square::<U, OP, false, false, false>,
                    (false, true, _) => square::<U, OP, false, true, false>,
                    (true, false, _) => square::<U, OP, true, false, false>,
                    (true, true, false) => square::<U, OP, true, true, false>,
                    (true, true, true) => square::<U, OP, true, true, true>,
                };
                run(task, count, step, to, &mut behind, &mut ahead);
            }
            Steps::Ending { count, tail } => {
                for (half, first) in [0, opaque(task.low)].into_iter().enumerate().take(1 + usize::from(tall)) {
                    chunk.configure::<U>(Shape::Line { rows: rows[half] as u8, wide, tail: tail as u8 });
                    let to = to.add(first * SUMS);
                    match wide {
                        false => line::<U, OP, false>(task, half, count, tail, to, &mut behind, &mut ahead),
                        true => line::<U, OP, true>(task, half, count, tail, to, &mut behind, &mut ahead),
                    }
                }
            }
        }
        behind.all::<U>();
        chunk.leave::<U>(task, to);
    }
}

/// What is asked for with each step: see [`Task::ask_for`].
struct Ahead {
    at: *const f32,
    lines: usize,
}

impl Ahead {
    #[inline(always)]
    fn of(task: &Task, steps: Steps) -> Ahead {
        let cells = match steps {
            Steps::Even { step, .. } => step,
            Steps::Ending { .. } => SIDE,
        };
        Ahead { at: task.asks(), lines: (opaque(task.ahead_step) * cells).div_ceil(LINE) }
    }
    #[inline(always)]
    fn some<U: Unit>(&mut self) {
        for _ in 0..self.lines {
            U::ask(self.at);
            self.at = self.at.wrapping_byte_add(LINE);
        }
    }
}

/// Bytes of a line of all caches.
const LINE: usize = 64;

/// How the cells of a tap are cut into steps of at most [`SIDE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    Even { count: usize, step: usize },
    Ending { count: usize, tail: usize },
}

impl Steps {
    #[inline(always)]
    fn of(depth: usize) -> Steps {
        let least = depth.div_ceil(SIDE);
        let even = |count: usize| (depth as u32).is_multiple_of(count as u32).then(|| depth / count);
        if depth <= SIDE {
            // Without cells there is no step, but there are sums.
            Steps::Even { count: least, step: depth.max(1) }
        } else if let Some(step) = even(least) {
            Steps::Even { count: least, step }
        } else if let Some(step) = even(least + 1).filter(|_| least >= 4) {
            Steps::Even { count: least + 1, step }
        } else {
            Steps::Ending { count: depth / SIDE, tail: depth % SIDE }
        }
    }
    fn count(self) -> usize {
        match self {
            Steps::Even { count, .. } => count,
            Steps::Ending { count, .. } => count,
        }
    }
}

/// Two rows of tiles when `TALL`, by two columns when `WIDE`. `B` stays in the nearest cache while rows of `A` pass by, or the other
/// way round when `STAY`.
unsafe fn square<U: Unit, const OP: usize, const TALL: bool, const WIDE: bool, const STAY: bool>(
    task: &Task,
    count: usize,
    step: usize,
    to: *mut f32,
    behind: &mut Behind,
    ahead: &mut Ahead,
) {
    // SAFETY: tiles are named as `Shape::Square` says; a step is of cells that the task has.
    unsafe {
        U::zero::<0>();
        if WIDE {
            U::zero::<1>();
        }
        if TALL {
            U::zero::<2>();
        }
        if TALL && WIDE {
            U::zero::<3>();
        }
        let mut b = task.b;
        for tap in 0..task.tap_count {
            let offset = *task.taps.add(tap);
            let mut first = opaque_pointer(task.a[0]).wrapping_add(offset);
            let mut second = opaque_pointer(task.a[1]).wrapping_add(offset);
            for _ in 0..count {
                fetch::<U, 6>(STAY, b, task.ldb);
                fetch::<U, 4>(!STAY, first, task.lda);
                U::multiply::<OP, 0, 4, 6>();
                if WIDE {
                    fetch::<U, 7>(STAY, b.wrapping_add(SIDE), task.ldb);
                    U::multiply::<OP, 1, 4, 7>();
                }
                if TALL {
                    fetch::<U, 5>(!STAY, second, task.lda);
                    U::multiply::<OP, 2, 5, 6>();
                }
                if TALL && WIDE {
                    U::multiply::<OP, 3, 5, 7>();
                }
                behind.some::<U>();
                ahead.some::<U>();
                first = first.wrapping_add(step);
                second = second.wrapping_add(step);
                b = b.wrapping_add(step * task.ldb);
            }
        }
        let low = to.add(opaque(task.low) * SUMS);
        U::store::<0>(to, SUMS);
        if WIDE {
            U::store::<1>(to.add(SIDE), SUMS);
        }
        if TALL {
            U::store::<2>(low, SUMS);
        }
        if TALL && WIDE {
            U::store::<3>(low.add(SIDE), SUMS);
        }
    }
}

/// Loads a tile, of rows that pass by or stay near.
#[inline(always)]
unsafe fn fetch<U: Unit, const T: usize>(pass: bool, from: *const f32, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match pass {
            true => U::stream::<T>(from, stride),
            false => U::load::<T>(from, stride),
        }
    }
}

/// One row of tiles, that of the task's start `half`: `count` whole steps a tap and a `tail`.
#[inline(always)]
unsafe fn line<U: Unit, const OP: usize, const WIDE: bool>(
    task: &Task,
    half: usize,
    count: usize,
    tail: usize,
    to: *mut f32,
    behind: &mut Behind,
    ahead: &mut Ahead,
) {
    // SAFETY: tiles are named as `Shape::Line` says; a step is of cells that the task has.
    unsafe {
        U::zero::<0>();
        if WIDE {
            U::zero::<1>();
        }
        let mut b = task.b;
        for tap in 0..task.tap_count {
            let mut a = task.a[half].wrapping_add(*task.taps.add(tap));
            for _ in 0..count {
                U::load::<4>(b, task.ldb);
                U::stream::<2>(a, task.lda);
                U::multiply::<OP, 0, 2, 4>();
                if WIDE {
                    U::load::<5>(b.wrapping_add(SIDE), task.ldb);
                    U::multiply::<OP, 1, 2, 5>();
                }
                behind.some::<U>();
                ahead.some::<U>();
                a = a.wrapping_add(SIDE);
                b = b.wrapping_add(SIDE * task.ldb);
            }
            U::load::<6>(b, task.ldb);
            U::stream::<3>(a, task.lda);
            U::multiply::<OP, 0, 3, 6>();
            if WIDE {
                U::load::<7>(b.wrapping_add(SIDE), task.ldb);
                U::multiply::<OP, 1, 3, 7>();
            }
            b = b.wrapping_add(tail * task.ldb);
        }
        U::store::<0>(to, SUMS);
        if WIDE {
            U::store::<1>(to.add(SIDE), SUMS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cover_every_depth_and_are_even_where_it_costs_little() {
        for depth in 1..500 {
            let (covered, largest) = match Steps::of(depth) {
                Steps::Even { count, step } => (count * step, step),
                Steps::Ending { count, tail } => (count * SIDE + tail, tail),
            };
            assert_eq!(covered, depth);
            assert!((1..=SIDE).contains(&largest), "{depth}");
        }
        assert_eq!(Steps::of(0), Steps::Even { count: 0, step: 1 });
        assert_eq!(Steps::of(12), Steps::Even { count: 1, step: 12 });
        assert_eq!(Steps::of(20), Steps::Even { count: 2, step: 10 });
        assert_eq!(Steps::of(72), Steps::Even { count: 6, step: 12 });
        assert_eq!(Steps::of(40), Steps::Ending { count: 2, tail: 8 });
        assert_eq!(Steps::of(17), Steps::Ending { count: 1, tail: 1 });
    }
}
