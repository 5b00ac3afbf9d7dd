//! What Kaldi writes to disk: tokens, numbers, vectors and matrices, as text and in binary (`scan`, `array`), and tables of them
//! by utterance, `.ark` and `.scp` (`table`). Files come from anywhere: sizes are checked against the bytes that are there before
//! anything is allocated, so memory stays in proportion to the file.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod array;
mod error;
mod scan;
mod table;
mod write;

pub use array::Array;
pub use error::{ArkError, ErrorKind, Result};
pub use scan::{Scanner, is_binary};
pub use table::{Entry, read_ark, read_scp};
pub use write::{write_ark, write_text_ark};
