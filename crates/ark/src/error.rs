//! What can go wrong with a file of Kaldi. Every variant is reachable from a file.

use carafe_tensor::TensorError;

/// A result of this crate.
pub type Result<T, E = ArkError> = std::result::Result<T, E>;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error, Clone, PartialEq)]
pub enum ArkError {
    /// Something else stands where a thing is expected.
    #[error("expected {expected} at byte {at}, found {found}")]
    Expected {
        /// What was expected.
        expected: String,
        /// Where.
        at: usize,
        /// What is there.
        found: String,
    },
    /// The file is too short.
    #[error("the file ends early: {what} at byte {at} needs {needed} bytes, {found} are left")]
    Truncated {
        /// What is cut off.
        what: &'static str,
        /// Where it begins.
        at: usize,
        /// The bytes that it takes.
        needed: u64,
        /// The bytes that are there.
        found: usize,
    },
    /// Well formed, but it has no counterpart here.
    #[error("{0}")]
    Unsupported(String),
    /// A line of a list of utterances.
    #[error("line {line}: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry of an archive.
    #[error("utterance `{key}`: {source}")]
    Entry {
        /// The utterance.
        key: String,
        /// What is wrong with it.
        source: Box<ArkError>,
    },
    /// The tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The coarse class of an [`ArkError`], for callers that map errors to codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The bytes are wrong or cut short.
    Invalid,
    /// Well formed, but it has no counterpart here.
    Unsupported,
}

impl ArkError {
    /// Its class.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ArkError::Unsupported(_) => ErrorKind::Unsupported,
            ArkError::Entry { source, .. } => source.kind(),
            _ => ErrorKind::Invalid,
        }
    }
    pub(crate) fn of(self, key: &str) -> ArkError {
        ArkError::Entry { key: key.to_string(), source: Box::new(self) }
    }
}
