//! Matrix products. `B` is packed into panels of columns; `A` is read where it lies; every sum stays in a register until it
//! is whole, and is stored once, with what follows already applied. Convolutions run on the same innermost functions: a tap
//! of the filter is an offset added to the rows of `A`.

pub(crate) mod amx;
mod batch;
mod bytes_batch;
pub(crate) mod cells;
#[cfg(target_arch = "x86_64")]
mod cells_avx2;
#[cfg(target_arch = "x86_64")]
mod cells_avx512;
mod cells_plain;
mod compressed;
mod dots;
#[cfg(target_arch = "x86_64")]
mod f32_avx2;
#[cfg(target_arch = "x86_64")]
mod f32_avx512;
mod f32_simd;
pub(crate) mod grid;
#[cfg(target_arch = "x86_64")]
mod halves_avx512;
pub(crate) mod leave;
#[cfg(target_arch = "x86_64")]
mod leave_avx512;
pub(crate) mod pack;
pub(crate) mod panels;
mod prepacked;
pub(crate) mod region;
#[cfg(target_arch = "x86_64")]
mod short_avx512;
pub(crate) mod task;

pub use batch::{BatchMatMul, Operand};
pub use bytes_batch::BytesMatMul;
pub use cells::{LONGEST_INTEGER_SUM, Numbers};
pub use compressed::{Codes, CompressedGemm, CompressedMatrix, Compression, RoundedGemm, Stored};
pub use prepacked::Gemm;

use crate::Isa;
use crate::simd::dispatch;
use task::Task;

/// Computes one tile.
///
/// # Safety
/// Everything the task points to may be read or written in the size it says, and the processor has the instructions of the
/// level.
pub(crate) type TileFn = unsafe fn(&Task);

/// Computes whole tiles one below the other, as many as fit so many rows, and gives the rows that are done; 0 for what it does not
/// do.
///
/// # Safety
/// As for [`TileFn`], of a task for so many rows.
pub(crate) type StripFn = unsafe fn(&Task, usize) -> usize;

/// The innermost functions of one instruction level.
#[derive(Debug)]
pub(crate) struct Micro {
    /// Most rows of a tile.
    pub(crate) rows: usize,
    /// Most rows of each half of a pair: a tile whose rows come from two positions.
    pub(crate) pair_rows: usize,
    /// Columns of a panel.
    pub(crate) width: usize,
    /// The last panel has a multiple of so many columns.
    pub(crate) grain: usize,
    /// Whether long sums may be taken in blocks, with what there is so far in the output.
    pub(crate) resumes: bool,
    /// Tile registers, which take what is not skinny.
    unit: Option<amx::TileUnit>,
    /// For short sums, of which calls of a tile would take longer than the sums.
    pub(crate) strip: Option<StripFn>,
    /// By width in eights of columns, then by rows. Tiles of more than seven rows find the eighth at the second start.
    tiles: [[TileFn; 15]; 4],
    pairs: [[TileFn; 8]; 4],
    skinny: [[TileFn; 5]; 4],
    /// Finishes and stores rows of 32 sums as a task says.
    store: unsafe fn(&Task, *const f32, usize),
}

/// Rows of a tile of vectors that are counted from its first start.
const FIRST_ROWS: usize = 7;
/// Most rows that count as few.
pub(crate) const SKINNY: usize = 4;

impl Micro {
    pub(crate) fn of(isa: Isa) -> &'static Micro {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => &f32_avx2::MICRO,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) | Isa::Amx(_) => &f32_avx512::MICRO,
            // SAFETY: a table is looked up and nothing is run.
            _ => unsafe { dispatch!(isa, <S>() -> &'static Micro { &f32_simd::Level::<S>::MICRO }) },
        }
    }
    /// Whether tile registers multiply.
    pub(crate) fn has_tiles(&self) -> bool {
        self.unit.is_some()
    }
    /// `rows` that follow one another; `starts` says how many of them from which start.
    pub(crate) fn tile(&self, rows: usize, width: usize) -> TileFn {
        self.unit.as_ref().map_or_else(|| self.tiles[width / 8 - 1][rows], |unit| unit.tile)
    }
    /// Twice `rows`, each half from its own start.
    pub(crate) fn pair(&self, rows: usize, width: usize) -> TileFn {
        self.unit.as_ref().map_or_else(|| self.pairs[width / 8 - 1][rows], |unit| unit.tile)
    }
    /// Sets where the halves of a tile begin whose first row the task has. The largest of the tiles beside it has `most` rows.
    #[inline(always)]
    pub(crate) fn start(&self, task: &mut Task, rows: usize, most: usize) {
        let first = rows.min(FIRST_ROWS);
        task.rows = self.unit.as_ref().map_or([first, rows - first], |_| amx::TileUnit::starts(rows, most));
        task.low = rows - task.rows[1];
        task.a[1] = task.a[0].wrapping_add(task.low * task.lda);
    }
    /// Runs what computes tiles on this thread. What they store is whole when this returns.
    ///
    /// # Safety
    /// The processor has the instructions of the level, and what tasks point to lives until this returns.
    pub(crate) unsafe fn around(&self, mut work: impl FnMut()) {
        match &self.unit {
            None => work(),
            // SAFETY: the caller's promise.
            Some(unit) => unsafe { (unit.around)(&mut work) },
        }
    }
    /// Up to [`SKINNY`] rows, of panels that come from far away.
    pub(crate) fn skinny(&self, rows: usize, width: usize) -> TileFn {
        self.skinny[width / 8 - 1][rows]
    }
}

/// The same number, but the compiler does not know it: addresses are then built from it instead of being kept one by one, and it
/// is neither read nor written together with its neighbours in memory.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
pub(crate) fn opaque(mut x: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}

/// [`opaque`] for pointers.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read or written there.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
pub(crate) fn opaque_pointer<T>(mut x: *const T) -> *const T {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    x
}

/// Repeats a block for rows 0 to 13 with the row as a constant.
#[cfg(target_arch = "x86_64")]
macro_rules! each_row {
    ($i:ident, $body:block) => {
        each_row!(@ $i, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $i:ident, $body:block, $($n:literal)*) => {{
        $({ const $i: usize = $n; $body })*
    }};
}
#[cfg(target_arch = "x86_64")]
pub(crate) use each_row;
