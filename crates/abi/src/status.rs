//! Failures across the boundary: a number is returned, and its text waits in one slot per thread on the engine's side.

use crate::tables::*;
use carafe_graph::{Error, ErrorKind, Result};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

// A thread that is ending may release what it holds after its slot has gone; then there is nobody to tell.
pub(crate) fn set_text(text: &str) {
    let _ = TEXT.try_with(|t| {
        let mut t = t.borrow_mut();
        t.clear();
        t.push_str(text);
    });
}

/// Runs `f` with the text of the last failure of this thread.
pub(crate) fn with_text<T>(f: impl FnOnce(&str) -> T) -> T {
    let mut f = Some(f);
    let told = TEXT.try_with(|t| f.take().map(|f| f(&t.borrow()))).ok().flatten();
    match (told, f) {
        (Some(told), _) => told,
        (None, Some(f)) => f(""),
        (None, None) => unreachable!("`f` goes with its answer"),
    }
}

pub(crate) fn take_text() -> String {
    TEXT.try_with(|t| std::mem::take(&mut *t.borrow_mut())).unwrap_or_default()
}

pub(crate) fn code(kind: ErrorKind) -> CarafeStatus {
    match kind {
        ErrorKind::Invalid => CARAFE_INVALID,
        ErrorKind::Unsupported => CARAFE_UNSUPPORTED,
        ErrorKind::NotFound => CARAFE_NOT_FOUND,
        ErrorKind::Io => CARAFE_IO,
        ErrorKind::Usage => CARAFE_USAGE,
        ErrorKind::Busy => CARAFE_BUSY,
        ErrorKind::Cancelled => CARAFE_CANCELLED,
    }
}

pub(crate) fn kind(code: CarafeStatus) -> ErrorKind {
    match code {
        CARAFE_UNSUPPORTED => ErrorKind::Unsupported,
        CARAFE_NOT_FOUND => ErrorKind::NotFound,
        CARAFE_IO => ErrorKind::Io,
        CARAFE_USAGE => ErrorKind::Usage,
        CARAFE_BUSY => ErrorKind::Busy,
        CARAFE_CANCELLED => ErrorKind::Cancelled,
        _ => ErrorKind::Invalid,
    }
}

/// Turns the result of a callback into a status, on the engine's side. A panic stops here.
pub fn guard(f: impl FnOnce() -> Result<()>) -> CarafeStatus {
    guard_into(f, set_text)
}

/// As `guard`, with another place for the text: a library hands it to `CarafeHost::set_error`.
pub(crate) fn guard_into(f: impl FnOnce() -> Result<()>, tell: impl FnOnce(&str)) -> CarafeStatus {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => CARAFE_OK,
        Ok(Err(e)) => {
            tell(&e.to_string());
            code(e.kind())
        }
        Err(panic) => {
            tell(&panic_text(panic));
            CARAFE_PANIC
        }
    }
}

/// Runs what has no status, such as the end of an object; a panic is given to `tell` and goes no further.
pub(crate) fn guard_end(f: impl FnOnce(), tell: impl FnOnce(&str)) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        tell(&panic_text(panic));
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    if text.is_none() {
        // The end of a value of unknown kind may panic in turn.
        std::mem::forget(panic);
    }
    format!("panic: {}", text.as_deref().unwrap_or("of unknown kind"))
}

/// The error behind a status that a library returned, with the library named. `None` for success.
pub fn take_error(status: CarafeStatus, library: &str) -> Option<Error> {
    if status == CARAFE_OK {
        return None;
    }
    let text = take_text();
    let text = match (text.is_empty(), status) {
        (false, _) => text,
        (true, CARAFE_PANIC) => "a panic or an exception was stopped at the boundary".into(),
        (true, _) => format!("failed with status {status} and no text"),
    };
    Some(Error::new(kind(status), text).at(format!("extension `{library}`")))
}

/// `take_error` as a result.
pub fn report(status: CarafeStatus, library: &str) -> Result<()> {
    take_error(status, library).map_or(Ok(()), Err)
}
