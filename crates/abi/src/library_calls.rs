//! Calls of the functions of a library: all of them go through here.

use crate::calls::enter;
use crate::library::Library;
use crate::status::{report, set_text, take_text};
use crate::tables::*;
use carafe_graph::{Error, Result};

impl Library {
    /// Calls a function of the library. A failure has its text and the library's name.
    pub(crate) fn call(&self, what: &'static str, f: impl FnOnce() -> CarafeStatus) -> Result<()> {
        report(self.status(what, f)?, self.name())
    }
    /// As `call`, for a function one of whose failures is an answer.
    pub(crate) fn status(&self, what: &'static str, f: impl FnOnce() -> CarafeStatus) -> Result<CarafeStatus> {
        set_text("");
        match enter(self.shown(), what, f) {
            (CARAFE_OK, Some(misuse)) => Err(self.blame(misuse)),
            (status, _) => Ok(status),
        }
    }
    /// Calls a function of the library that cannot fail: what goes wrong all the same is logged.
    pub(crate) fn notify(&self, what: &'static str, f: impl FnOnce()) {
        // The text of an earlier failure may still be needed.
        let before = take_text();
        let ((), misuse) = enter(self.shown(), what, f);
        set_text(&before);
        if let Some(misuse) = misuse {
            crate::host::warn(self.name(), &format!("`{what}`: {misuse}"));
        }
    }
    /// Names the library in an error.
    pub(crate) fn blame(&self, error: Error) -> Error {
        error.at(format!("extension `{}`", self.name()))
    }
}
