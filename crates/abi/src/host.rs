//! What the engine offers to libraries, and how a library reaches it. In the engine `host()` is its own table; in a
//! library it is the one that the engine handed over.

use crate::calls::{current, enter_part, misuse};
use crate::crossing::{put, refuse};
use crate::status::{guard_end, set_text, take_text, with_text};
use crate::tables::*;
use crate::text::text;
use carafe_graph::log::{Level, report};
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use std::any::Any;
use std::ffi::c_void;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

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
    try_parallel_for: run_parallel_status,
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

/// Runs `body` over the parts of `0..n` on the engine's threads and waits for all of them. A panic in a part goes on here,
/// so that the call fails; parts that did not begin before it are left out.
pub fn parallel_for(n: usize, body: impl Fn(Range<usize>) + Sync) {
    let done = try_parallel_for(n, |part| {
        body(part);
        Ok(())
    });
    debug_assert!(done.is_ok(), "no part has an error to give");
}

/// As `parallel_for`, with parts that can fail: the first failure is given.
pub fn try_parallel_for(n: usize, body: impl Fn(Range<usize>) -> Result<()> + Sync) -> Result<()> {
    enum Failure {
        Error(Error),
        Panic(Box<dyn Any + Send>),
    }
    struct Job<F> {
        body: F,
        failed: Mutex<Option<Failure>>,
    }
    unsafe extern "C" fn call<F: Fn(Range<usize>) -> Result<()> + Sync>(user: *mut c_void, begin: usize, end: usize) {
        // SAFETY: `user` is the job, borrowed until `try_parallel_for` returns.
        let job = unsafe { &*user.cast::<Job<F>>() };
        let failed = || job.failed.lock().unwrap_or_else(|e| e.into_inner());
        if failed().is_some() {
            return;
        }
        let failure = match catch_unwind(AssertUnwindSafe(|| (job.body)(begin..end))) {
            Ok(Ok(())) => return,
            Ok(Err(e)) => Failure::Error(e),
            Err(panic) => Failure::Panic(panic),
        };
        failed().get_or_insert(failure);
    }
    fn pointer_of<F: Fn(Range<usize>) -> Result<()> + Sync>(_: &Job<F>) -> CarafeLoop {
        Some(call::<F>)
    }
    let job = Job { body, failed: Mutex::new(None) };
    let call = pointer_of(&job);
    // SAFETY: the job lives until the call returns, and may be used by several threads at once.
    unsafe { (host().parallel_for)(n, call, (&raw const job).cast_mut().cast()) }
    match job.failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        None => Ok(()),
        Some(Failure::Error(e)) => Err(e),
        Some(Failure::Panic(panic)) => resume_unwind(panic),
    }
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
    // SAFETY: the contract gives a place to write to; null is refused.
    if let Err(e) = unsafe { put(out, code, "the text of an error") } {
        misuse(e);
    }
}

/// Shorter loops run where they are: starting threads costs more than they take.
const WORTH_SHARING: usize = 1024;

unsafe extern "C" fn run_parallel(n: usize, body: CarafeLoop, user: *mut c_void) {
    let Some(body) = body else {
        return misuse(Error::usage("parallel_for: a null pointer for the body of a loop"));
    };
    let user = Part(user);
    let done = in_parts(n, &|begin, end| {
        // SAFETY: the contract lets `body` be called with `user` by several threads at once.
        unsafe { body(user.get(), begin, end) };
        CARAFE_OK
    });
    if let Err((_, text)) = done {
        misuse(Error::usage(text));
    }
}

unsafe extern "C" fn run_parallel_status(n: usize, body: CarafeTryLoop, user: *mut c_void) -> CarafeStatus {
    let Some(body) = body else {
        return refuse(&Error::usage("try_parallel_for: a null pointer for the body of a loop"));
    };
    let user = Part(user);
    // SAFETY: as in `run_parallel`.
    match in_parts(n, &|begin, end| unsafe { body(user.get(), begin, end) }) {
        Ok(()) => CARAFE_OK,
        Err((status, text)) => {
            set_text(&text);
            status
        }
    }
}

/// What a library wants handed to the parts of its loop.
struct Part(*mut c_void);
// SAFETY: the contract lets `body` be called with `user` by several threads at once.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

impl Part {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Shares `0..n` among the threads that are lent, else among new ones. The first failure is given with its text; parts that
/// did not begin before it are left out.
fn in_parts(n: usize, body: &(dyn Fn(usize, usize) -> CarafeStatus + Sync)) -> Result<(), (CarafeStatus, String)> {
    let library = current();
    let failed: Mutex<Option<(CarafeStatus, String)>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    let part = |begin: usize, end: usize| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        set_text("");
        let failure = match enter_part(library, "a part of a loop", || body(begin, end)) {
            (CARAFE_OK, None) => return,
            (CARAFE_OK, Some(misuse)) => (CARAFE_USAGE, misuse.to_string()),
            (status, _) => (status, take_text()),
        };
        stop.store(true, Ordering::Relaxed);
        failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(failure);
    };
    let lent = carafe_device::parallel();
    let threads = match &lent {
        Some(lent) => lent.threads(),
        None => std::thread::available_parallelism().map_or(1, |n| n.get()),
    };
    if threads <= 1 || n < WORTH_SHARING {
        if n > 0 {
            part(0, n);
        }
    } else {
        let step = n.div_ceil(threads);
        match lent {
            Some(lent) => lent.run(n.div_ceil(step), &|i| part(i * step, ((i + 1) * step).min(n))),
            None => std::thread::scope(|s| {
                for begin in (step..n).step_by(step) {
                    let run = move || part(begin, (begin + step).min(n));
                    // Where there is no thread to be had, the part runs here.
                    if std::thread::Builder::new().spawn_scoped(s, run).is_err() {
                        run();
                    }
                }
                part(0, step);
            }),
        }
    }
    failed.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

unsafe extern "C" fn drop_owner(owner: *mut c_void) {
    if !owner.is_null() {
        // SAFETY: `keep_input` made the box, and the contract gives it back once.
        end("the end of a kept input", || drop(unsafe { Box::from_raw(owner.cast::<Tensor>()) }));
    }
}

unsafe extern "C" fn log(level: u32, message: CarafeStr) {
    const LEVELS: [Level; 3] = [Level::Error, Level::Warning, Level::Info];
    // SAFETY: the contract gives a text.
    let message = unsafe { text(message, "a line of the log") }.unwrap_or("(not UTF-8)");
    let level = LEVELS.get(level as usize).copied().unwrap_or(Level::Debug);
    let library = current().map_or(String::new(), |l| format!("{l}: "));
    // The hook is the program's; a panic in it must not unwind into the library.
    let line = || {
        report(level, &format!("{library}{message}"));
    };
    guard_end(line, |_| ());
}

/// A line for the user about a library, where no call can fail with it.
pub(crate) fn warn(library: &str, message: &str) {
    report(Level::Warning, &format!("{library}: {message}"));
}

/// The end of an object of this side that the other side asks for: a panic there is logged and goes no further.
pub(crate) fn end(what: &str, f: impl FnOnce()) {
    guard_end(f, |text| {
        let line = format!("{what} failed: {text}");
        // SAFETY: the table lives for ever, and copies the text.
        unsafe { (host().log)(1, CarafeStr::of(&line)) }
    });
}
