//! How often the process was forked, itself and those that it comes from. A child has the memory of its parent but only the thread
//! that forked, so whoever owns threads asks whether they are still his.

use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

/// Another number in the child of a fork than in its parent. Costs one load.
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts forks from now on; before the first thread is started.
#[cfg(unix)]
pub(crate) fn watch() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> i32;
    }
    ONCE.call_once(|| {
        // SAFETY: the C library keeps the function and calls it in a child; it only counts. Without memory for that it is not
        // called, and a forked child is as it was without it.
        unsafe { pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
pub(crate) fn watch() {}
