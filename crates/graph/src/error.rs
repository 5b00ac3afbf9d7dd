//! The error every crate above `tensor` returns. Locations are added while it travels up (`at`), outermost first, so the
//! text reads "where: what".

use carafe_tensor::TensorError;
use std::fmt;

/// A result with the engine's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a door needs to know to choose an exit code or an HTTP status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The model, file or tensor is wrong.
    Invalid,
    /// Well formed, but nobody here can handle it.
    Unsupported,
    /// A name (device, input, property, file) that does not exist.
    NotFound,
    /// The operating system refused.
    Io,
    /// The caller used an interface wrongly.
    Usage,
    /// A request is running and cannot be touched.
    Busy,
    /// The work was cancelled.
    Cancelled,
}

/// An error with its kind, its message and the locations it passed through.
///
/// It is one pointer: almost every function returns one, and each `?` would copy what lies in it.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    locations: Vec<String>,
    code: Option<u16>,
}

impl Error {
    /// Of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::of(kind, message.into())
    }
    #[cold]
    #[inline(never)]
    fn of(kind: ErrorKind, message: String) -> Error {
        Error(Box::new(Parts { kind, message, locations: Vec::new(), code: None }))
    }
    /// The model, file or tensor is wrong.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }
    /// Well formed, but nobody here can handle it.
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }
    /// A name that does not exist.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, message)
    }
    /// The caller used an interface wrongly.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }
    /// The operating system refused; a missing file is of kind `NotFound`.
    pub fn io(what: impl fmt::Display, e: &std::io::Error) -> Error {
        let kind = if e.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
        Error::new(kind, format!("{what}: {e}"))
    }
    /// Puts a location in front: the node, then the file, then the command. One that stands in front already is not repeated.
    #[must_use]
    pub fn at(self, location: impl Into<String>) -> Error {
        self.behind(location.into())
    }
    #[cold]
    #[inline(never)]
    fn behind(mut self, location: String) -> Error {
        let locations = &mut self.0.locations;
        if locations.last() != Some(&location) {
            locations.push(location);
        }
        self
    }
    /// Points to a longer text: the number of an entry of `docs/faq.md`, which `carafe explain` prints. One that is set stays.
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Error {
        self.0.code.get_or_insert(code);
        self
    }
    /// The number of that entry.
    pub fn code(&self) -> Option<u16> {
        self.0.code
    }
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The message without its locations.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, location) in self.0.locations.iter().rev().enumerate() {
            write!(f, "{}{location}", if i > 0 { ", " } else { "" })?;
        }
        write!(f, "{}{}", if self.0.locations.is_empty() { "" } else { ": " }, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?})", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<TensorError> for Error {
    #[cold]
    #[inline(never)]
    fn from(e: TensorError) -> Error {
        Error::invalid(e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_from_the_outermost_to_the_innermost() {
        let e = Error::invalid("rank 3 needed, found 2").at("node `a` (MatMul)").at("model `m.xml`");
        assert_eq!(e.to_string(), "model `m.xml`, node `a` (MatMul): rank 3 needed, found 2");
    }

    #[test]
    fn an_error_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn a_place_that_two_callers_know_is_said_once() {
        let e = Error::invalid("rank 3 needed").at("node `a`").at("node `a`").at("model `m`");
        assert_eq!(e.to_string(), "model `m`, node `a`: rank 3 needed");
    }
}
