//! The last words of a process that ends inside of a library: which one it was. A segmentation fault, an abort or an
//! exception that nobody catches cannot be stopped here; it can be told whose it is.

/// From now on a process that ends by a fatal signal says on standard error which library was being called. What happens
/// otherwise stays: the handler that was there before, or the system's own, ends the process. For programs, not for
/// libraries: handlers belong to the whole process.
pub fn report_crashes() {
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use crate::calls::inside;
    use std::mem::MaybeUninit;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

    const SIGNALS: [(libc::c_int, &str); 5] = [
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGFPE, "SIGFPE"),
    ];

    /// What handled each signal before; made before the handler that reads it.
    static BEFORE: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
        [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];
    static SAID: AtomicBool = AtomicBool::new(false);

    pub(super) fn install() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            for (i, (signal, _)) in SIGNALS.iter().enumerate() {
                let mut own = MaybeUninit::<libc::sigaction>::zeroed();
                let mut before = MaybeUninit::<libc::sigaction>::zeroed();
                // SAFETY: zero is a good `sigaction`, filled in before it is used; `handle` does only what a handler may.
                // On the alternative stack, because the usual one may be what ran out.
                unsafe {
                    libc::sigaction(*signal, std::ptr::null(), before.as_mut_ptr());
                    BEFORE[i].store(Box::into_raw(Box::new(before.assume_init())), Ordering::Release);
                    let action = own.as_mut_ptr();
                    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
                    (*action).sa_sigaction = handler as *const () as usize;
                    (*action).sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigemptyset(&raw mut (*action).sa_mask);
                    libc::sigaction(*signal, own.as_ptr(), std::ptr::null_mut());
                }
            }
        });
    }

    // Nothing here takes memory or a lock.
    extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let at = SIGNALS.iter().position(|(s, _)| *s == signal);
        let name = at.map_or("a signal", |i| SIGNALS[i].1);
        if !SAID.swap(true, Ordering::Relaxed) {
            match inside() {
                (Some((library, what)), _) => {
                    say(&["carafe: ", name, " inside of library `", library, "`, in a call of `", what, "`\n"]);
                }
                (None, Some(last)) => {
                    say(&["carafe: ", name, " outside of the libraries; the one called last is `", last, "`\n"]);
                }
                (None, None) => say(&["carafe: ", name, "; no library was called\n"]),
            }
        }
        let before = at.map_or(std::ptr::null_mut(), |i| BEFORE[i].load(Ordering::Acquire));
        // SAFETY: the action is one that the system gave, or its default. A fault happens again when this returns, and
        // is then handled as before; a signal that was sent is sent again.
        unsafe {
            if before.is_null() {
                libc::signal(signal, libc::SIG_DFL);
            } else {
                libc::sigaction(signal, before, std::ptr::null_mut());
            }
            if info.is_null() || (*info).si_code <= 0 {
                libc::raise(signal);
            }
        }
    }

    fn say(parts: &[&str]) {
        let mut line = [0u8; 512];
        let mut n = 0;
        for part in parts {
            let take = part.len().min(line.len() - n);
            line[n..n + take].copy_from_slice(&part.as_bytes()[..take]);
            n += take;
        }
        // SAFETY: the bytes are there; `write` may be called by a handler.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), n) };
    }
}
