//! What a thread keeps between the tiles of a chunk.
//!
//! A configuration waits for all that is under way and clears the registers, so it is made only where tiles change their size.
//! Behind the chunk it is released, because threads go on to run other code: then the system has no registers to save, and a
//! configuration of others is never taken for one from here. What others had is not brought back: tile registers belong to
//! whoever runs, by the calling convention.
//!
//! The sums of a tile leave while the next one is computed, a few rows a step: vectors have nothing else to do then, and tile
//! registers would wait for them otherwise.

use super::{SIDE, Shape, Unit};
use crate::gemm::leave::{Leaving, SUMS};
use crate::gemm::task::{Target, Task};
use crate::gemm::{opaque, opaque_pointer};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::null;

pub(in crate::gemm) struct Chunk {
    /// As the registers are configured.
    shape: Cell<Option<Shape>>,
    waiting: Waiting,
    /// Of the tile that is computed and of the one behind it.
    sums: [Sums; 2],
    turn: Cell<usize>,
}

/// Sums that leave with the next tile: each number is read by itself, as it was written. Two in one load would come back from
/// memory, behind the tiles that are stored there, and everything would wait for them.
struct Waiting {
    row: Cell<usize>,
    column: Cell<usize>,
    columns: Cell<usize>,
    thread: Cell<usize>,
    leaving: Cell<*const Leaving<'static>>,
    sums: Cell<*const f32>,
    rows: Cell<usize>,
}

impl Waiting {
    const fn none() -> Waiting {
        Waiting {
            row: Cell::new(0),
            column: Cell::new(0),
            columns: Cell::new(0),
            thread: Cell::new(0),
            leaving: Cell::new(null()),
            sums: Cell::new(null()),
            rows: Cell::new(0),
        }
    }
    #[inline(always)]
    fn set(&self, behind: &Behind) {
        self.row.set(behind.target.row);
        self.column.set(behind.target.column);
        self.columns.set(behind.target.columns);
        self.thread.set(behind.target.thread);
        self.leaving.set(behind.target.leaving);
        self.sums.set(behind.sums);
        self.rows.set(behind.rows);
    }
    #[inline(always)]
    fn take(&self) -> Behind {
        let target = Target {
            row: opaque(self.row.get()),
            column: opaque(self.column.get()),
            columns: opaque(self.columns.get()),
            thread: opaque(self.thread.get()),
            leaving: opaque_pointer(self.leaving.get()),
        };
        let sums = opaque_pointer(self.sums.get()).cast_mut();
        Behind { target, sums, rows: opaque(self.rows.replace(0)), share: 0 }
    }
}

#[repr(align(64))]
struct Sums(UnsafeCell<[MaybeUninit<f32>; 2 * SIDE * SUMS]>);

impl Sums {
    const fn new() -> Sums {
        Sums(UnsafeCell::new([MaybeUninit::uninit(); 2 * SIDE * SUMS]))
    }
}

/// Runs what computes the tiles of a chunk on this thread. The outputs are whole when it returns, not when it unwinds.
///
/// # Safety
/// The processor has the unit. What tasks point to lives until this returns.
pub(super) unsafe fn around<U: Unit>(work: &mut dyn FnMut()) {
    let chunk = Chunk {
        shape: Cell::new(None),
        waiting: Waiting::none(),
        sums: [Sums::new(), Sums::new()],
        turn: Cell::new(0),
    };
    let began = Began::<U> { chunk: &chunk, outer: U::chunk().replace(&chunk), unit: std::marker::PhantomData };
    work();
    // SAFETY: the caller's promise.
    unsafe { chunk.waiting.take().all::<U>() };
    drop(began);
}

/// A chunk has begun; at its end, or when it unwinds, the registers are released.
struct Began<'a, U: Unit> {
    chunk: &'a Chunk,
    outer: *const Chunk,
    unit: std::marker::PhantomData<U>,
}

impl<U: Unit> Drop for Began<'_, U> {
    fn drop(&mut self) {
        U::chunk().set(self.outer);
        if self.chunk.shape.get().is_none() {
            return;
        }
        // SAFETY: the unit has been used. A chunk around this one, in whose epilogue this one ran, lives.
        unsafe {
            U::release();
            if let Some(outer) = self.outer.as_ref() {
                outer.shape.set(None);
            }
        }
    }
}

impl Chunk {
    /// Brings the registers into a shape.
    #[inline(always)]
    pub(super) unsafe fn configure<U: Unit>(&self, shape: Shape) {
        if self.shape.get() != Some(shape) {
            self.shape.set(Some(shape));
            // SAFETY: the caller's promise.
            unsafe { U::configure(&shape.config()) };
        }
    }

    /// Where the sums of the next tile go, and the tile behind it with the rows that leave in each of `steps`.
    #[inline(always)]
    pub(super) fn next(&self, steps: usize) -> (*mut f32, Behind) {
        let turn = self.turn.get() ^ 1;
        self.turn.set(turn);
        let mut behind = self.waiting.take();
        behind.share = behind.rows.div_ceil(steps.max(1)).max(LEAST_SHARE);
        (self.sums[turn].0.get().cast(), behind)
    }

    /// Lets the sums of a tile leave: with the next one, or at once where that is a matter of others, who find no tile half done.
    #[inline(always)]
    pub(super) unsafe fn leave<U: Unit>(&self, task: &Task, sums: *mut f32) {
        let (first, second) = (opaque(task.rows[0]), opaque(task.rows[1]));
        let rows = if second > 0 { opaque(task.low) + second } else { first };
        let behind = Behind { target: task.target(), sums, rows, share: 0 };
        // SAFETY: tasks of cells have it.
        match unsafe { (*task.leaving).is_foreign() } {
            // SAFETY: the caller's promise.
            true => unsafe { behind.all::<U>() },
            false => self.waiting.set(&behind),
        }
    }
}

/// Fewer rows at a time cost more than they hide.
const LEAST_SHARE: usize = 8;

/// Sums that have not left yet.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    target: Target,
    sums: *mut f32,
    rows: usize,
    share: usize,
}

impl Behind {
    /// Lets a share of the rows leave.
    #[inline(always)]
    pub(super) unsafe fn some<U: Unit>(&mut self) {
        if self.rows == 0 {
            return;
        }
        let rows = self.share.min(self.rows);
        // SAFETY: the rows were stored, and are left out from now on.
        unsafe { U::leave(&self.target, self.sums, rows) };
        self.target.row += rows;
        self.sums = self.sums.wrapping_add(rows * SUMS);
        self.rows -= rows;
    }

    /// Lets all that is left leave.
    #[inline(always)]
    pub(super) unsafe fn all<U: Unit>(self) {
        if self.rows > 0 {
            // SAFETY: the rows were stored.
            unsafe { U::leave(&self.target, self.sums, self.rows) };
        }
    }
}
