//! Indices as they come: 32 or 64 bits, and negative ones that count from the end of an axis.

use std::fmt;

/// Indices of either width.
#[derive(Clone, Copy, Debug)]
pub enum Indices<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
}

impl Indices<'_> {
    pub fn len(&self) -> usize {
        match self {
            Indices::I32(list) => list.len(),
            Indices::I64(list) => list.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [i32]> for Indices<'a> {
    fn from(list: &'a [i32]) -> Self {
        Indices::I32(list)
    }
}

impl<'a> From<&'a [i64]> for Indices<'a> {
    fn from(list: &'a [i64]) -> Self {
        Indices::I64(list)
    }
}

/// Places to write indices of either width to.
#[derive(Debug)]
pub enum IndicesMut<'a> {
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
}

impl IndicesMut<'_> {
    pub fn len(&self) -> usize {
        match self {
            IndicesMut::I32(list) => list.len(),
            IndicesMut::I64(list) => list.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One index.
pub(crate) trait Index: Copy + Send + Sync + 'static {
    fn signed(self) -> i64;
    fn of(index: usize) -> Self;

    /// Place in an axis of `n`; negative indices count from its end.
    #[inline(always)]
    fn in_axis(self, n: usize) -> Option<usize> {
        let index = self.signed();
        let index = if index < 0 { index + n as i64 } else { index };
        if (index as u64) < n as u64 { Some(index as usize) } else { None }
    }
}

impl Index for i32 {
    #[inline(always)]
    fn signed(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    fn of(index: usize) -> i32 {
        index as i32
    }
}

impl Index for i64 {
    #[inline(always)]
    fn signed(self) -> i64 {
        self
    }
    #[inline(always)]
    fn of(index: usize) -> i64 {
        index as i64
    }
}

/// Runs `$body` with the list under its own type.
macro_rules! with_indices {
    ($indices:expr, $list:ident => $body:expr) => {
        match $indices {
            $crate::movement::Indices::I32($list) => $body,
            $crate::movement::Indices::I64($list) => $body,
        }
    };
}
pub(crate) use with_indices;

/// An index that points outside of its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    pub index: i64,
    /// Length of the axis.
    pub n: usize,
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} is outside of an axis of {}", self.index, self.n)
    }
}

impl std::error::Error for BadIndex {}

/// Refuses the first index outside of `-below..n`, where `below` is `n` or, where negative ones mean nothing, 0.
pub(super) fn check_all<I: Index>(list: &[I], n: usize, below: usize) -> Result<(), BadIndex> {
    let bad = |index: i64| index >= n as i64 || index < -(below as i64);
    // Whole blocks first, so that the usual case is a loop without branches.
    for block in list.chunks(4096) {
        if block.iter().fold(false, |any, i| any | bad(i.signed())) {
            let index = block.iter().map(|i| i.signed()).find(|&i| bad(i)).unwrap_or_default();
            return Err(BadIndex { index, n });
        }
    }
    Ok(())
}
