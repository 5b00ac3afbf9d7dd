//! How a kernel cuts its work into chunks: first among the threads, so that the same part stays on the same thread from
//! kernel to kernel, then each thread's part in a few pieces that others may take over.

use crate::part_of;
use std::ops::Range;

/// `total` things in `threads * pieces` chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    total: usize,
    threads: usize,
    pieces: usize,
}

/// Below this many multiplications a job is not worth a fork.
const SMALL: usize = 16 << 10;
/// Multiplications that a piece should have at least.
const PIECE: usize = 400 << 10;
/// Multiplications that a piece should have at most: work is given up between pieces.
const LONG: usize = 256 << 20;

impl Split {
    /// `work` counts multiplications of all things together.
    pub(crate) fn new(total: usize, work: usize, threads: usize) -> Split {
        if work < SMALL || total < 2 {
            return Split { total, threads: 1, pieces: 1 };
        }
        let threads = threads.clamp(1, total);
        let each = work / threads;
        let pieces = (each / PIECE).clamp(1, 4).max(each / LONG).min(total / threads);
        Split { total, threads, pieces }
    }
    pub(crate) fn chunks(&self) -> usize {
        if self.total == 0 { 0 } else { self.threads * self.pieces }
    }
    pub(crate) fn range(&self, chunk: usize) -> Range<usize> {
        let mine = part_of(self.total, self.threads, chunk / self.pieces);
        let piece = part_of(mine.len(), self.pieces, chunk % self.pieces);
        mine.start + piece.start..mine.start + piece.end
    }
}
