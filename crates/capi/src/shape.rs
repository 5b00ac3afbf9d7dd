//! `ov_shape.h`: shapes whose sizes are known. The struct is the caller's, its array is of `malloc`.

use crate::heap;
use crate::pointers::{List, Out};
use crate::status::{Failure, Outcome, Status, guard};
use crate::variadic::Words;

/// `ov_shape_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    rank: i64,
    dims: List<i64>,
}

/// The same with an array that goes to the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OwnedShape {
    rank: i64,
    dims: *mut i64,
}

const EMPTY: OwnedShape = OwnedShape { rank: 0, dims: std::ptr::null_mut() };

/// More axes than any tensor has: a struct that was never filled shows itself by its rank.
const MAX_RANK: i64 = 1024;

pub(crate) fn checked_rank(rank: i64, what: &str) -> Outcome<usize> {
    match rank {
        0..=MAX_RANK => Ok(rank as usize),
        _ => Err(Failure::argument(format!("`{what}` has rank {rank}, expected 0 to {MAX_RANK}"))),
    }
}

impl Shape {
    /// Of two words of a call: the struct fits into registers.
    pub(crate) fn of_words(words: &mut Words) -> Shape {
        Shape { rank: words.next() as i64, dims: List::of_word(words.pointer()) }
    }
    /// The sizes; a rank of 0 is a scalar.
    pub(crate) fn sizes(&self, what: &str) -> Outcome<Vec<usize>> {
        let dims = self.dims.get(checked_rank(self.rank, what)?, what)?;
        let size = |&n: &i64| usize::try_from(n).map_err(|_| Failure::argument(format!("`{what}` has a size {n}")));
        dims.iter().map(size).collect()
    }
}

impl OwnedShape {
    pub(crate) fn of(sizes: &[usize]) -> Outcome<OwnedShape> {
        let dims: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        Ok(OwnedShape { rank: dims.len() as i64, dims: heap::list(&dims)? })
    }
}

/// Makes a shape; without `dims` the sizes are for the caller to fill in.
#[unsafe(no_mangle)]
pub extern "C" fn ov_shape_create(rank: i64, dims: List<i64>, shape: Out<OwnedShape>) -> Status {
    guard(|| {
        shape.check("shape")?;
        if rank <= 0 {
            return Err(Failure::argument(format!("a shape of rank {rank} cannot be made")));
        }
        let rank = checked_rank(rank, "rank")?;
        let sizes = if dims.is_null() { vec![0; rank] } else { dims.get(rank, "dims")?.to_vec() };
        if let Some(n) = sizes.iter().find(|n| **n < 0) {
            return Err(Failure::argument(format!("a shape has no size {n}; partial shapes have")));
        }
        shape.set(OwnedShape { rank: rank as i64, dims: heap::list(&sizes)? }, "shape")
    })
}

/// Frees the array of a shape. One of rank 0 has none, whatever its pointer is: programs free shapes that were never filled.
#[unsafe(no_mangle)]
pub extern "C" fn ov_shape_free(shape: Out<OwnedShape>) -> Status {
    guard(|| {
        let old = shape.get("shape")?;
        if old.rank > 0 {
            heap::release(old.dims);
        }
        shape.set(EMPTY, "shape")
    })
}
