//! How far a model may unfold. Functions that call functions, and loops inside of loops, grow exponentially from a small
//! file; a real model stays far below a thousand times its size.

use carafe_graph::{Error, Result};
use std::cell::Cell;

/// Times its own size that a model may grow to.
const GROWTH: usize = 1000;
/// Bytes that count for any file, however small.
const LEAST_BYTES: usize = 4 * 1024;

#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<usize>,
}

impl Budget {
    /// The budget of a file of that many bytes.
    pub(crate) fn of(bytes: usize) -> Budget {
        Budget { left: Cell::new(bytes.saturating_add(LEAST_BYTES).saturating_mul(GROWTH)) }
    }
    /// Takes the size of what is translated next.
    pub(crate) fn spend_bytes(&self, bytes: usize) -> Result<()> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| {
            Error::invalid(format!("functions or loops unfold the model to more than {GROWTH} times its size"))
        })?;
        self.left.set(left);
        Ok(())
    }
}
