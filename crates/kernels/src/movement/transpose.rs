//! Two axes, one dense in the source and the other in the destination, with all else around them. Blocks that fit into the
//! first cache are cut into tiles that are turned in registers. A tile that would stick out is moved back over its
//! neighbour, so axes of 4 and more need no scalar rest.

use super::tiles;
use super::walk::Axis;
use super::weave::weave;
use crate::Isa;
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
    /// Rows and columns of a block; the last one takes what is left as well.
    block: [usize; 2],
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
        // A long block for a short side; whole tiles and, where rows are aligned, whole cache lines.
        let side = |other: usize| SIDE * SIDE / other.clamp(2, SIDE) / 16 * 16;
        Some(Transpose { rows, columns, src: i.src, dst: j.dst, size, block: [side(columns), side(rows)] })
    }

    fn blocks_of(&self) -> [usize; 2] {
        [(self.rows / self.block[0]).max(1), (self.columns / self.block[1]).max(1)]
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks_of().iter().product()
    }

    /// # Safety
    /// Both arrays lie within what the pointers may reach, and nobody else writes these blocks.
    pub(super) unsafe fn run(&self, isa: Isa, src: *const u8, dst: *mut u8, blocks: Range<usize>) {
        let [down, right] = self.blocks_of();
        for block in blocks {
            let (i, j) = (block % down, block / down);
            let end = |k: usize, blocks: usize, side: usize, n: usize| if k + 1 == blocks { n } else { (k + 1) * side };
            let i = i * self.block[0]..end(i, down, self.block[0], self.rows);
            let j = j * self.block[1]..end(j, right, self.block[1], self.columns);
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
