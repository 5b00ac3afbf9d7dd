//! What can go wrong with a type, a shape or a tensor. Every variant is reachable from a file or a caller's value;
//! mistakes of our own panic instead.

use crate::ElementType;

/// Why a tensor cannot be made or looked at.
#[derive(Debug, thiserror::Error, Clone, PartialEq)]
#[allow(missing_docs)] // the message of a variant says what its fields are
pub enum TensorError {
    /// No element type has this name.
    #[error("element type `{found}` is unknown; expected a name such as `f32` or a precision such as `FP32`")]
    UnknownElementType { found: String },
    /// The text is no dimension.
    #[error("dimension `{found}` is not valid; expected a number, `-1`, `?`, or an interval such as `1..10`")]
    BadDim { found: String },
    /// The text is no shape.
    #[error("shape `{found}` is not valid; expected dimensions joined by commas, or `...`: {reason}")]
    BadShape { found: String, reason: String },
    /// The size of the tensor is beyond all numbers.
    #[error("a tensor of type {ty} and shape {shape:?} is too large to address")]
    TooLarge { ty: ElementType, shape: Vec<usize> },
    /// There is no memory for it.
    #[error("could not allocate {bytes} bytes")]
    OutOfMemory { bytes: usize },
    /// The type has no elements that could be stored.
    #[error("a tensor cannot hold elements of type {ty}; expected a concrete type of fixed size")]
    NoStorage { ty: ElementType },
    /// The elements are of another type.
    #[error("expected elements of type {expected}, found {found}")]
    TypeMismatch { expected: ElementType, found: ElementType },
    /// There is no conversion between the types.
    #[error("elements of type {from} cannot be converted to {to}")]
    NoCast { from: ElementType, to: ElementType },
    /// More or fewer elements than the shape has.
    #[error("shape {shape:?} needs {expected} elements, found {found}")]
    ElementCount { shape: Vec<usize>, expected: usize, found: usize },
    /// Too few bytes for the shape.
    #[error("type {ty} and shape {shape:?} need {expected} bytes, found {found}")]
    ByteCount { ty: ElementType, shape: Vec<usize>, expected: usize, found: usize },
    /// The range lies outside of the bytes.
    #[error("bytes {offset}..{offset}+{len} lie outside of a store of {available} bytes")]
    OutsideStore { offset: usize, len: usize, available: usize },
    /// The range lies outside of the tensor.
    #[error("elements {start}..{start}+{count} lie outside of a tensor of {available} elements")]
    OutsideTensor { start: usize, count: usize, available: usize },
    /// The bytes do not lie at an address that fits the type.
    #[error("the bytes of a {ty} tensor are not aligned for its elements")]
    Misaligned { ty: ElementType },
    /// The bytes are no list of texts.
    #[error("string payload is not valid: {reason}")]
    BadStrings { reason: String },
    /// The bytes are no packed sequence.
    #[error("packed sequence is not valid: {reason}")]
    BadSequence { reason: String },
    /// Memory of a device could not be read or written.
    #[error("memory of {device}: {reason}")]
    Remote { device: String, reason: String },
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
    /// Memory is short, or that of a device does not answer.
    Memory,
}

impl TensorError {
    /// What kind of mistake it is.
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
            OutOfMemory { .. } | Remote { .. } => ErrorKind::Memory,
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
