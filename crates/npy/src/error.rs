//! What can go wrong with an array file. Every variant is reachable from a file or a caller's tensor.

use carafe_tensor::TensorError;

#[derive(Debug, thiserror::Error, Clone, PartialEq)]
pub enum NpyError {
    #[error("not a {expected} file: it does not begin with {signature}")]
    Signature { expected: &'static str, signature: &'static str },
    #[error("the file ends early: {what} needs {needed} bytes, found {found}")]
    Truncated { what: String, needed: usize, found: usize },
    #[error("the array header is not valid: {reason}")]
    Header { reason: String },
    #[error("{what} is not supported; expected {expected}")]
    Unsupported { what: String, expected: &'static str },
    #[error("element {index} is not valid text: {reason}")]
    Text { index: usize, reason: String },
    #[error("the archive is not valid: {reason}")]
    Archive { reason: String },
    #[error("{what} is too large: {bytes} bytes, at most {limit} are possible")]
    TooLarge { what: String, bytes: u128, limit: u64 },
    #[error("array `{name}`: {source}")]
    Member { name: String, source: Box<NpyError> },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The coarse class of an [`NpyError`], for callers that map errors to codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The bytes are wrong or cut short.
    Invalid,
    /// Well formed, but it has no counterpart here.
    Unsupported,
    /// A size that cannot be written or held.
    Size,
}

impl NpyError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            NpyError::Unsupported { .. } => ErrorKind::Unsupported,
            NpyError::TooLarge { .. } | NpyError::Tensor(_) => ErrorKind::Size,
            NpyError::Member { source, .. } => source.kind(),
            _ => ErrorKind::Invalid,
        }
    }
    /// Says which array of an archive is meant.
    pub(crate) fn of_member(self, name: &str) -> NpyError {
        NpyError::Member { name: name.to_string(), source: Box::new(self) }
    }
}
