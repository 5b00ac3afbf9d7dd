//! Turns a panic of the code under test into a failure text, so that one bad case does not hide the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f`; a panic becomes an error that names the place in the source.
pub fn caught<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            LAST.with(|l| *l.borrow_mut() = info.to_string());
        }));
    });
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(_) => Err(LAST.with(|l| std::mem::take(&mut *l.borrow_mut()))),
    }
}
