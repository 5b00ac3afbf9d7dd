//! Tensors from and to the array files of NumPy. Files come from anywhere: sizes are checked against the bytes that are
//! there before anything is allocated, so memory stays in proportion to the file. An archive may be deflated, which allows
//! about a thousandfold: [`read_npz_within`] bounds what its arrays may grow to.
//!
//! NumPy has no bf16, no floats of 8 bits or fewer and no integers below a byte; tensors of those types are written as f32.

#![forbid(unsafe_code)]

mod array;
mod crc32;
mod error;
mod header;
mod npz;
mod zip;

pub use array::{NpyParts, npy_parts, read_npy, write_npy};
pub use error::{ErrorKind, NpyError};
pub use npz::{read_npz, read_npz_within, write_npz};
