//! What the engine offers to libraries, and how a library reaches it. In the engine `host()` is its own table; in a
//! library it is the one that the engine handed over.

use crate::status::{guard, set_text, with_text};
use crate::tables::*;
use crate::text::text;
use carafe_tensor::Tensor;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

const VERSION: &str = env!("CARGO_PKG_VERSION");

static OWN: CarafeHost = CarafeHost {
    size: size_of::<CarafeHost>(),
    major: CARAFE_ABI_MAJOR,
    minor: CARAFE_ABI_MINOR,
    version: CarafeStr::of(VERSION),
    set_error,
    last_error,
    parallel_for: run_parallel,
    drop_owner,
    log,
};

static GIVEN: AtomicPtr<CarafeHost> = AtomicPtr::new(std::ptr::null_mut());

/// The engine's table.
pub fn host() -> &'static CarafeHost {
    let given = GIVEN.load(Ordering::Acquire);
    // SAFETY: a given table lives until the process ends, as its documentation says.
    if given.is_null() { &OWN } else { unsafe { &*given } }
}

/// Takes the table that the engine hands to a library.
///
/// # Safety
/// `table` must be the pointer that `create_extensions` or `CreatePluginEngine` was called with.
pub(crate) unsafe fn adopt(table: *const CarafeHost) {
    if !std::ptr::eq(table, &OWN) {
        GIVEN.store(table.cast_mut(), Ordering::Release);
    }
}

/// Whether this code is in a library that an engine loaded.
pub(crate) fn is_library() -> bool {
    !GIVEN.load(Ordering::Acquire).is_null()
}

/// Gives the text of a failure to the engine.
pub(crate) fn tell(message: &str) {
    // SAFETY: the table lives for ever, and copies the text.
    unsafe { (host().set_error)(CarafeStr::of(message)) }
}

/// Runs `body` over the parts of `0..n` on the engine's threads and waits for all of them.
pub fn parallel_for(n: usize, body: impl Fn(std::ops::Range<usize>) + Sync) {
    unsafe extern "C" fn call<F: Fn(std::ops::Range<usize>) + Sync>(user: *mut c_void, begin: usize, end: usize) {
        guard(|| {
            // SAFETY: `user` is the closure, borrowed until `parallel_for` returns.
            unsafe { (*user.cast::<F>())(begin..end) };
            Ok(())
        });
    }
    fn pointer_of<F: Fn(std::ops::Range<usize>) + Sync>(_: &F) -> CarafeLoop {
        call::<F>
    }
    let call = pointer_of(&body);
    // SAFETY: the closure lives until the call returns, and may be called by several threads at once.
    unsafe { (host().parallel_for)(n, call, (&raw const body).cast_mut().cast()) }
}

unsafe extern "C" fn set_error(message: CarafeStr) {
    // SAFETY: the contract gives a text; what is not one leaves a hint.
    match unsafe { text(message, "the text of an error") } {
        Ok(t) => set_text(t),
        Err(e) => set_text(&e.to_string()),
    }
}

unsafe extern "C" fn last_error(out: *mut CarafeStr) {
    // The slot is not touched before the next call on this thread, so the pointer stays good until then.
    let code = with_text(|t| CarafeStr { data: t.as_ptr().cast(), len: t.len() });
    // SAFETY: the contract gives a place to write to.
    unsafe { out.write(code) }
}

/// Shorter loops run where they are: starting threads costs more than they take.
const WORTH_SHARING: usize = 1024;

unsafe extern "C" fn run_parallel(n: usize, body: CarafeLoop, user: *mut c_void) {
    struct Part(*mut c_void);
    // SAFETY: the contract lets `body` be called with `user` by several threads at once.
    unsafe impl Send for Part {}
    // SAFETY: as above.
    unsafe impl Sync for Part {}
    let lent = carafe_device::parallel();
    let threads = match &lent {
        Some(lent) => lent.threads(),
        None => std::thread::available_parallelism().map_or(1, |n| n.get()),
    };
    if threads <= 1 || n < WORTH_SHARING {
        if n > 0 {
            // SAFETY: passed on from the caller.
            unsafe { body(user, 0, n) }
        }
        return;
    }
    let part = &Part(user);
    let step = n.div_ceil(threads);
    if let Some(lent) = lent {
        lent.run(n.div_ceil(step), &|i| {
            let Part(user) = *part;
            // SAFETY: passed on from the caller; `run` ends after every part.
            unsafe { body(user, i * step, ((i + 1) * step).min(n)) }
        });
        return;
    }
    std::thread::scope(|s| {
        for begin in (step..n).step_by(step) {
            // SAFETY: passed on from the caller; the scope ends after every part.
            s.spawn(move || unsafe { body(part.0, begin, (begin + step).min(n)) });
        }
        // SAFETY: as above.
        unsafe { body(part.0, 0, step) }
    });
}

unsafe extern "C" fn drop_owner(owner: *mut c_void) {
    if !owner.is_null() {
        // SAFETY: `keep_input` made the box, and the contract gives it back once.
        drop(unsafe { Box::from_raw(owner.cast::<Tensor>()) });
    }
}

unsafe extern "C" fn log(level: u32, message: CarafeStr) {
    const LEVELS: [&str; 4] = ["ERROR", "WARNING", "INFO", "DEBUG"];
    // SAFETY: the contract gives a text.
    let message = unsafe { text(message, "a line of the log") }.unwrap_or("(not UTF-8)");
    let level = LEVELS.get(level as usize).unwrap_or(&"DEBUG");
    if *level != "DEBUG" {
        eprintln!("[ {level} ] {message}");
    }
}
