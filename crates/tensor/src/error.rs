//! What can go wrong with a type, a shape or a tensor. Every variant is reachable from a file or a caller's value;
//! mistakes of our own panic instead.

use crate::ElementType;

#[derive(Debug, thiserror::Error, Clone, PartialEq)]
pub enum TensorError {
    #[error("element type `{found}` is unknown; expected a name such as `f32` or a precision such as `FP32`")]
    UnknownElementType { found: String },
    #[error("dimension `{found}` is not valid; expected a number, `-1`, `?`, or an interval such as `1..10`")]
    BadDim { found: String },
    #[error("shape `{found}` is not valid; expected dimensions joined by commas, or `...`: {reason}")]
    BadShape { found: String, reason: String },
    #[error("a tensor of type {ty} and shape {shape:?} is too large to address")]
    TooLarge { ty: ElementType, shape: Vec<usize> },
    #[error("could not allocate {bytes} bytes")]
    OutOfMemory { bytes: usize },
    #[error("a tensor cannot hold elements of type {ty}; expected a concrete type of fixed size")]
    NoStorage { ty: ElementType },
    #[error("expected elements of type {expected}, found {found}")]
    TypeMismatch { expected: ElementType, found: ElementType },
    #[error("elements of type {from} cannot be converted to {to}")]
    NoCast { from: ElementType, to: ElementType },
    #[error("shape {shape:?} needs {expected} elements, found {found}")]
    ElementCount { shape: Vec<usize>, expected: usize, found: usize },
    #[error("type {ty} and shape {shape:?} need {expected} bytes, found {found}")]
    ByteCount { ty: ElementType, shape: Vec<usize>, expected: usize, found: usize },
    #[error("bytes {offset}..{offset}+{len} lie outside of a store of {available} bytes")]
    OutsideStore { offset: usize, len: usize, available: usize },
    #[error("elements {start}..{start}+{count} lie outside of a tensor of {available} elements")]
    OutsideTensor { start: usize, count: usize, available: usize },
    #[error("the bytes of a {ty} tensor are not aligned for its elements")]
    Misaligned { ty: ElementType },
    #[error("string payload is not valid: {reason}")]
    BadStrings { reason: String },
    #[error("packed sequence is not valid: {reason}")]
    BadSequence { reason: String },
}

/// The coarse class of a [`TensorError`], for callers that map errors to codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// A text or a byte payload could not be read.
    Parse,
    /// An element type is not the one the call needs.
    Type,
    /// A shape, count, offset or index does not fit.
    Size,
    /// Memory is short.
    Memory,
}

impl TensorError {
    pub fn kind(&self) -> ErrorKind {
        use TensorError::*;
        match self {
            UnknownElementType { .. } | BadDim { .. } | BadShape { .. } | BadStrings { .. } | BadSequence { .. } => {
                ErrorKind::Parse
            }
            NoStorage { .. } | TypeMismatch { .. } | NoCast { .. } => ErrorKind::Type,
            TooLarge { .. }
            | ElementCount { .. }
            | ByteCount { .. }
            | OutsideStore { .. }
            | OutsideTensor { .. }
            | Misaligned { .. } => ErrorKind::Size,
            OutOfMemory { .. } => ErrorKind::Memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_was_expected_and_found() {
        let error = TensorError::TypeMismatch { expected: ElementType::F32, found: ElementType::I64 };
        assert_eq!(error.to_string(), "expected elements of type f32, found i64");
    }

    #[test]
    fn kinds_separate_memory_from_size() {
        assert_eq!(TensorError::OutOfMemory { bytes: 1 }.kind(), ErrorKind::Memory);
        assert_eq!(TensorError::TooLarge { ty: ElementType::F32, shape: vec![] }.kind(), ErrorKind::Size);
    }
}
