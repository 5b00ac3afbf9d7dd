//! Which library each thread is inside of: errors, log lines and the last words of a dying process name it. A call into a
//! library goes through `Library::call` and its siblings, and nowhere else.

use crate::status::set_text;
use carafe_graph::Error;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, Ordering};

/// One call into a library. It lies on the stack of the thread that makes it.
pub(crate) struct Frame {
    library: &'static &'static str,
    what: &'static str,
    /// What the library did wrong where no status could tell it.
    misuse: RefCell<Option<Error>>,
    outer: *const Frame,
}

thread_local! {
    static INSIDE: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// The library that was entered last by any thread; stands in on threads that a library started itself.
static LAST: AtomicPtr<&'static str> = AtomicPtr::new(std::ptr::null_mut());

/// Library and function that this thread is inside of, else the library that was called last. Reads two words and takes
/// no lock, so that a signal handler may ask.
#[cfg(unix)]
pub(crate) fn inside() -> (Option<(&'static str, &'static str)>, Option<&'static str>) {
    let frame = INSIDE.with(Cell::get);
    // SAFETY: a frame that is entered is alive until it is left.
    let here = (!frame.is_null()).then(|| unsafe { (*(*frame).library, (*frame).what) });
    let last = LAST.load(Ordering::Relaxed);
    // SAFETY: only pointers to texts that live for ever are stored.
    (here, (!last.is_null()).then(|| unsafe { *last }))
}

/// The library that this thread is inside of.
pub(crate) fn current() -> Option<&'static &'static str> {
    let frame = INSIDE.with(Cell::get);
    // SAFETY: a frame that is entered is alive until it is left.
    (!frame.is_null()).then(|| unsafe { (*frame).library })
}

/// Remembers what a library did wrong in a call that has no status, or whose status it may not look at: the call into the
/// library that is running fails with it.
pub(crate) fn misuse(error: Error) {
    set_text(&error.to_string());
    let frame = INSIDE.with(Cell::get);
    if !frame.is_null() {
        // SAFETY: as in `inside`; the frame belongs to this thread.
        unsafe { &*frame }.misuse.borrow_mut().get_or_insert(error);
    }
}

/// Runs `f` inside of a library, and gives what it did wrong besides.
pub(crate) fn enter<T>(
    library: &'static &'static str,
    what: &'static str,
    f: impl FnOnce() -> T,
) -> (T, Option<Error>) {
    struct Leave<'a> {
        frame: &'a Frame,
        returned: bool,
    }
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            // Neither a return nor a panic of ours: an exception that the library let out. Whatever would catch it up
            // there ends the process without a word about whose it was.
            if !self.returned && !std::thread::panicking() {
                let (library, what) = (self.frame.library, self.frame.what);
                let text = format!("library `{library}` let an exception out of `{what}`; it must be caught there");
                carafe_graph::log::report(carafe_graph::log::Level::Error, &text);
                std::process::abort();
            }
            INSIDE.with(|i| i.set(self.frame.outer));
        }
    }
    let frame = Frame { library, what, misuse: RefCell::default(), outer: INSIDE.with(Cell::get) };
    INSIDE.with(|i| i.set(&raw const frame));
    LAST.store((&raw const *library).cast_mut(), Ordering::Relaxed);
    let mut leave = Leave { frame: &frame, returned: false };
    let result = f();
    leave.returned = true;
    drop(leave);
    (result, frame.misuse.into_inner())
}

/// As `enter`, for a part of a loop that another thread runs for a library. Without a library it only runs.
pub(crate) fn enter_part<T>(
    library: Option<&'static &'static str>,
    what: &'static str,
    f: impl FnOnce() -> T,
) -> (T, Option<Error>) {
    match library {
        Some(library) => enter(library, what, f),
        None => (f(), None),
    }
}
