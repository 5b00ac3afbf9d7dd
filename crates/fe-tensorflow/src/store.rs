//! The bytes that messages are slices of: a tensor is a view of the mapped file wherever it lies there as it is.

use bytes::Bytes;
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use std::cell::Cell;
use std::sync::Arc;

/// Bytes that constants may grow to when one value stands for all of their elements.
const MOST_FILLED: usize = 1 << 30;

/// One file.
#[derive(Debug)]
pub(crate) struct Store {
    whole: SharedBytes,
    filled: Cell<usize>,
}

struct Owner(SharedBytes);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Store {
    /// Of the bytes of a file.
    pub(crate) fn new(whole: SharedBytes) -> Store {
        Store { whole, filled: Cell::new(0) }
    }
    /// All of it, the way `prost` slices it.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::from_owner(Owner(self.whole.clone()))
    }
    /// The store that a slice is part of, and where it begins there.
    pub(crate) fn of(&self, slice: &Bytes) -> (SharedBytes, usize) {
        let start = (slice.as_ptr() as usize).wrapping_sub(self.whole.as_slice().as_ptr() as usize);
        if start.checked_add(slice.len()).is_some_and(|end| end <= self.whole.len()) {
            return (self.whole.clone(), start);
        }
        (SharedBytes::from_owner(Arc::new(slice.clone())), 0)
    }
    /// Counts the bytes of a constant that the file does not have element by element.
    pub(crate) fn fill(&self, bytes: usize) -> Result<()> {
        let all = self.filled.get().saturating_add(bytes);
        self.filled.set(all);
        match all <= MOST_FILLED {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "constants of one repeated value take {all} bytes, {MOST_FILLED} are the most"
            ))),
        }
    }
}
