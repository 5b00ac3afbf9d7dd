//! Element types, dimensions, shapes and tensors.
//!
//! A tensor is immutable and cheap to clone; the `*_mut` methods copy first when the bytes are shared or mapped.

#![warn(missing_docs)]

mod cast;
mod dim;
mod element;
mod error;
pub mod files;
pub mod float8;
mod hash;
pub mod memory;
pub mod pack;
mod remote;
mod sequence;
mod shape;
mod storage;
mod string_payload;
mod tensor;
mod text_bytes;

pub use cast::{Element, Number};
pub use dim::{Dim, Symbol};
pub use element::ElementType;
pub use error::{ErrorKind, TensorError};
pub use half::{bf16, f16};
pub use hash::Hash128;
pub use remote::RemoteMemory;
pub use sequence::{PackedSequence, pack_sequence, unpack_sequence};
pub use shape::{PartialShape, elements, strides};
pub use storage::SharedBytes;
pub use string_payload::{decode_strings, encode_strings};
pub use tensor::Tensor;
pub use text_bytes::{bytes_of_text, text_of_bytes};
