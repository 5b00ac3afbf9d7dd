//! Turns a panic of the code under test, and that it never ends, into a failure text, so that one bad case does not hide
//! the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Once, mpsc};
use std::time::Duration;

thread_local! {
    /// Text of the last panic of this thread; `None` where panics are nobody's business here.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic becomes an error that names the place in the source.
pub fn caught<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            let noted = LAST.with(|l| l.borrow_mut().as_mut().map(|last| *last = info.to_string())).is_some();
            // Where nobody comes back from a panic, this is the only chance to tell of it.
            if !noted || cfg!(panic = "abort") {
                usual(info);
            }
        }));
    });
    let before = LAST.with(|l| l.replace(Some(String::new())));
    let result = catch_unwind(AssertUnwindSafe(f));
    let text = LAST.with(|l| l.replace(before)).unwrap_or_default();
    result.unwrap_or(Err(text))
}

/// As `caught`, on a thread of its own that is left behind when it takes longer than `patience`.
pub fn within<T: Send + 'static>(
    patience: Duration,
    name: &str,
    f: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (send, ended) = mpsc::channel();
    let work = move || drop(send.send(caught(f)));
    match std::thread::Builder::new().name(name.to_string()).spawn(work) {
        Err(e) => Err(format!("cannot start a thread: {e}")),
        Ok(_) => ended
            .recv_timeout(patience)
            .unwrap_or_else(|_| Err(format!("there was no end after {} s", patience.as_secs_f32()))),
    }
}
