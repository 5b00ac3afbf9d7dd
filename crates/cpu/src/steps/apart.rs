//! Operands whose rows lie apart: a row is the last axis of a value as it lies in memory (the channels of a pixel), and the
//! next one begins further away than it is long, because the value is a range of the columns of a larger one. A step says
//! which of its operands may lie so; the others always lie densely.

use super::Step;
use carafe_kernels::movement::RowPiece;
use std::sync::Arc;

/// Which value of a step, by its place among what it reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Read(usize),
    Write(usize),
}

/// How rows lie: their length and the elements from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) len: usize,
    pub(crate) pitch: usize,
}

/// The operands of a step that lie apart; all others are `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    pub(crate) reads: Vec<Option<Rows>>,
    pub(crate) writes: Vec<Option<Rows>>,
}

impl Apart {
    pub(crate) fn is_needed(&self) -> bool {
        self.reads.iter().chain(&self.writes).any(Option::is_some)
    }
    /// Elements from row to row of a read.
    pub(super) fn read(&self, i: usize, dense: usize) -> usize {
        self.reads.get(i).copied().flatten().map_or(dense, |r| r.pitch)
    }
    /// The same of a result.
    pub(super) fn write(&self, i: usize, dense: usize) -> usize {
        self.writes.get(i).copied().flatten().map_or(dense, |r| r.pitch)
    }
}

/// What a step does that only puts rows together or takes them apart: ranges of each row of one array, the whole, are
/// arrays of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) outer: usize,
    /// Elements of a row of the whole.
    pub(crate) whole: usize,
    /// Start and length of each range.
    pub(crate) ranges: Vec<(usize, usize)>,
    /// Whether those rows are rows in the sense of this file.
    pub(crate) of_rows: bool,
    pub(crate) elem_size: usize,
    /// The pieces are read and the whole is written, or the other way around.
    pub(crate) joins: bool,
}

impl Pieces {
    /// The kernel's form, for pieces and a whole that may lie apart.
    pub(super) fn rows(&self, apart: &Apart) -> (Vec<RowPiece>, usize) {
        let pitch = |i: usize, len| if self.joins { apart.read(i, len) } else { apart.write(i, len) };
        let pieces = self.ranges.iter().enumerate();
        let pieces = pieces.map(|(i, &(start, len))| RowPiece { start, len, pitch: pitch(i, len) }).collect();
        (pieces, if self.joins { apart.write(0, self.whole) } else { apart.read(0, self.whole) })
    }
}

/// A step for pieces, which may lie apart.
pub(crate) fn pieces_step(pieces: Pieces, apart: &Apart) -> Arc<dyn Step> {
    super::movement::pieces_step(pieces, apart)
}
