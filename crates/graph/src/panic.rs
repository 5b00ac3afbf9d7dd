//! Panics of code that is called for somebody else become errors. The one place that reads what a panic threw.

use crate::error::{Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic in it is an error that says who panicked and with which text. What `work` was changing is as it was left
/// at that moment, so the caller must be able to throw it away or to put it right.
pub fn caught<R>(who: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(who, payload)))
}

/// A caught panic as an error with the text of the panic.
pub fn panicked(who: &str, payload: Box<dyn Any + Send>) -> Error {
    Error::invalid(format!("{who} panicked: {}", panic_text(payload)))
}

/// The text of a caught panic. A payload that is no text is not dropped: its drop could panic again, where nobody
/// catches it.
pub fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast::<String>().map(|s| *s).or_else(|p| p.downcast::<&str>().map(|s| s.to_string()));
    text.unwrap_or_else(|payload| {
        std::mem::forget(payload);
        "without a text".to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_text() {
        let e = caught("the evaluation", || -> Result<()> { panic!("index {} of 3", 7) }).unwrap_err();
        assert_eq!(e.to_string(), "the evaluation panicked: index 7 of 3");
    }

    #[test]
    fn a_panic_whose_payload_panics_when_it_is_dropped_is_an_error_too() {
        struct Loaded;
        impl Drop for Loaded {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        let e = caught("the kernel", || -> Result<()> { std::panic::panic_any(Loaded) }).unwrap_err();
        assert_eq!(e.to_string(), "the kernel panicked: without a text");
    }
}
