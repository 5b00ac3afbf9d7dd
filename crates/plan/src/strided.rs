//! Operands with a row stride: a row is the last dimension of a value as it lies in memory (the channels of a pixel), and the
//! next one begins further on than it is long, because the value is a range of the columns of a larger one. A step says
//! which of its operands may lie so; the others are always dense.

/// Which value of a step, by its index among what it reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A value it reads.
    Read(usize),
    /// A value it writes.
    Write(usize),
}

/// Rows with a stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Elements of a row.
    pub len: usize,
    /// Elements from one row to the next.
    pub stride: usize,
}

/// The operands of a step that have a row stride; all others are `None`.
#[derive(Clone, Debug, Default)]
pub struct RowStrides {
    /// Of what it reads.
    pub reads: Vec<Option<Rows>>,
    /// Of what it writes.
    pub writes: Vec<Option<Rows>>,
}

impl RowStrides {
    /// Whether any operand has one.
    pub fn any(&self) -> bool {
        self.reads.iter().chain(&self.writes).any(Option::is_some)
    }
    /// Elements from row to row of a read.
    pub fn read(&self, i: usize, dense: usize) -> usize {
        self.reads.get(i).copied().flatten().map_or(dense, |r| r.stride)
    }
    /// Elements from row to row of a result.
    pub fn write(&self, i: usize, dense: usize) -> usize {
        self.writes.get(i).copied().flatten().map_or(dense, |r| r.stride)
    }
}

/// What a step does that only concatenates or splits: ranges of each row of one array, the whole, are arrays of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Rows of the whole.
    pub outer: usize,
    /// Elements of a row of the whole.
    pub whole: usize,
    /// Start and length of each range.
    pub ranges: Vec<(usize, usize)>,
    /// Whether those rows are the last dimension in memory.
    pub of_rows: bool,
    /// Bytes of an element.
    pub elem_size: usize,
    /// The parts are read and the whole is written, or the other way around.
    pub joins: bool,
}
