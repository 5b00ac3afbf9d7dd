//! Two axes, one dense in the source and the other in the destination, with all else around them. Blocks that fit into the
//! first cache are cut into tiles that are turned in registers. A tile that would stick out is moved back over its
//! neighbour, so axes of 4 and more need no scalar rest.

use super::tiles;
use super::walk::Axis;
use crate::{Isa, part_of};
use std::ops::Range;

/// `dst[j][i] = src[i][j]` for elements of `size` bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transpose {
    /// Dense in the destination.
    rows: usize,
    /// Dense in the source.
    columns: usize,
    /// Bytes between rows of the source, and between columns of the destination.
    src: isize,
    dst: isize,
    size: usize,
    blocks_of_rows: usize,
    blocks_of_columns: usize,
}

/// Side of a block in elements.
const SIDE: usize = 64;

impl Transpose {
    /// `i` is dense in the destination, `j` in the source. `None` where plain loops do as well.
    pub(super) fn new(i: Axis, j: Axis, size: usize) -> Option<Transpose> {
        let (rows, columns) = (i.n, j.n);
        let least = rows.min(columns);
        let woven = size == 4 && weave(rows, columns, i.src, j.dst).is_some();
        if !(woven || matches!(size, 1 | 2 | 4 | 8 | 16) && least >= 4) {
            return None;
        }
        // A long block for a short side.
        let side = |own: usize, other: usize| own / (SIDE * SIDE / other.clamp(2, SIDE));
        Some(Transpose {
            rows,
            columns,
            src: i.src,
            dst: j.dst,
            size,
            blocks_of_rows: side(rows, columns).max(1),
            blocks_of_columns: side(columns, rows).max(1),
        })
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks_of_rows * self.blocks_of_columns
    }

    /// # Safety
    /// Both arrays lie within what the pointers may reach, and nobody else writes these blocks.
    pub(super) unsafe fn run(&self, isa: Isa, src: *const u8, dst: *mut u8, blocks: Range<usize>) {
        for block in blocks {
            let i = part_of(self.rows, self.blocks_of_rows, block % self.blocks_of_rows);
            let j = part_of(self.columns, self.blocks_of_columns, block / self.blocks_of_rows);
            let tile = tiles::Block { rows: i.len(), columns: j.len(), src: self.src, dst: self.dst };
            // SAFETY: the corner of a block, within both arrays.
            unsafe {
                let s = src.offset(i.start as isize * self.src + (j.start * self.size) as isize);
                let d = dst.offset(j.start as isize * self.dst + (i.start * self.size) as isize);
                tiles::turn(isa, self.size, tile, s, d);
            }
        }
    }
}

/// How many streams of 4-byte elements are woven together (`true`) or taken apart.
pub(super) fn weave(rows: usize, columns: usize, src: isize, dst: isize) -> Option<(usize, bool)> {
    match (rows, columns) {
        (2 | 3, _) if dst == 4 * rows as isize => Some((rows, true)),
        (_, 2 | 3) if src == 4 * columns as isize => Some((columns, false)),
        _ => None,
    }
}
