//! Status codes, the last error of the process, and the fence that every function runs behind.

use carafe::{Error, ErrorKind, TensorError};
use std::any::Any;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// `ov_status_e`.
pub type Status = c_int;

pub(crate) const OK: Status = 0;
pub(crate) const GENERAL_ERROR: Status = -1;
pub(crate) const NOT_IMPLEMENTED: Status = -2;
pub(crate) const PARAMETER_MISMATCH: Status = -4;
pub(crate) const NOT_FOUND: Status = -5;
pub(crate) const REQUEST_BUSY: Status = -8;
pub(crate) const RESULT_NOT_READY: Status = -9;
pub(crate) const INFER_CANCELLED: Status = -13;
pub(crate) const INVALID_C_PARAM: Status = -14;
pub(crate) const UNKNOWN_EXCEPTION: Status = -17;

/// What each code means, from `OK` down to `UNKNOW_EXCEPTION`.
const WORDS: [&CStr; 18] = [
    c"success",
    c"general error",
    c"not implemented",
    c"the model is not loaded",
    c"a parameter does not match",
    c"not found",
    c"out of bounds",
    c"unexpected error",
    c"the request is busy",
    c"the result is not ready",
    c"memory could not be allocated",
    c"no inference was started",
    c"the model was not read",
    c"the inference was cancelled",
    c"invalid c input parameters",
    c"unknown c error",
    c"not implemented in the c interface",
    c"unknown exception",
];

/// A static text for a code; for a number that is none, the text of the last code.
pub(crate) fn words(status: Status) -> &'static CStr {
    let at = status.checked_neg().and_then(|n| usize::try_from(n).ok());
    at.and_then(|n| WORDS.get(n)).unwrap_or(&WORDS[WORDS.len() - 1])
}

/// A failed call: its code, and what `ov_get_last_err_msg` gives.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
    /// An argument that no caller may pass.
    pub(crate) fn argument(text: impl Into<String>) -> Failure {
        Failure::new(INVALID_C_PARAM, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        let status = match e.kind() {
            ErrorKind::Busy => REQUEST_BUSY,
            ErrorKind::Cancelled => INFER_CANCELLED,
            _ => GENERAL_ERROR,
        };
        Failure::new(status, e.to_string())
    }
}

impl From<TensorError> for Failure {
    fn from(e: TensorError) -> Failure {
        Error::from(e).into()
    }
}

static LAST: Mutex<Option<String>> = Mutex::new(None);

pub(crate) fn last_error() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) fn set_last_error(text: Option<String>) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

/// Runs the body of a function: what fails becomes a code and the last error, a panic too.
pub(crate) fn guard(body: impl FnOnce() -> Outcome<()>) -> Status {
    guarded(|| body().map(|()| OK)).unwrap_or_else(|failure| {
        set_last_error(Some(failure.text));
        failure.status
    })
}

/// As [`guard`] for functions that answer with something else than a status: `otherwise` when it fails.
pub(crate) fn guard_or<T>(otherwise: T, body: impl FnOnce() -> Outcome<T>) -> T {
    guarded(body).unwrap_or_else(|failure| {
        set_last_error(Some(failure.text));
        otherwise
    })
}

fn guarded<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    report_panics();
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = format!("a bug in the engine: {}", panic_text(&*panic));
        Err(Failure::new(UNKNOWN_EXCEPTION, text))
    })
}

// The hook is that of this library alone: it has a copy of the standard library of its own.
fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
            let text = format!("panic: {}{place}", panic_text(info.payload()));
            carafe::log::report(carafe::log::Level::Debug, &text);
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
