//! Objects that are handed to the other side as a pointer to their table of functions, and the places where answers are
//! written. Every pointer that comes back is checked here: null, misaligned, or used by a call inside of another one.

use crate::calls::misuse;
use crate::status::{guard, set_text};
use crate::tables::{CARAFE_USAGE, CarafeStatus};
use carafe_graph::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A crossing object and what is behind it. `base` stands first, so that a pointer to it is one to the whole. Threads take
/// turns.
#[repr(C)]
pub(crate) struct Crossing<B, T> {
    base: B,
    /// The thread whose turn it is, by the address of something only it has.
    turn: AtomicUsize,
    inner: Mutex<T>,
}

/// What is behind a crossing object, for the length of one call.
pub(crate) struct Turn<'a, T> {
    turn: &'a AtomicUsize,
    pub(crate) inner: MutexGuard<'a, T>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.turn.store(0, Ordering::Relaxed);
    }
}

fn this_thread() -> usize {
    thread_local! {
        static OWN: u8 = const { 0 };
    }
    OWN.with(|own| std::ptr::from_ref(own).addr())
}

impl<B, T> Crossing<B, T> {
    pub(crate) fn new(base: B, inner: T) -> Crossing<B, T> {
        Crossing { base, turn: AtomicUsize::new(0), inner: Mutex::new(inner) }
    }
    /// The pointer for the other side, good as long as this stays where it is.
    pub(crate) fn pointer(&self) -> *mut B {
        (&raw const *self).cast_mut().cast()
    }
    pub(crate) fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(|e| e.into_inner())
    }
    /// Waits for other threads; a call from inside of a call is refused instead of waiting for itself.
    pub(crate) fn turn(&self, what: &str) -> Result<Turn<'_, T>> {
        if self.turn.load(Ordering::Relaxed) == this_thread() {
            return Err(Error::usage(format!("{what} is used from inside of a call to it")));
        }
        let inner = self.inner.lock().unwrap_or_else(|e| e.into_inner());
        self.turn.store(this_thread(), Ordering::Relaxed);
        Ok(Turn { turn: &self.turn, inner })
    }
}

/// The object behind a pointer that came back.
///
/// # Safety
/// A pointer that is not null must be one that `Crossing::pointer` gave, and the object must be alive.
pub(crate) unsafe fn object<'a, B, T>(p: *mut B, what: &str) -> Result<&'a Crossing<B, T>> {
    let p = p.cast::<Crossing<B, T>>();
    if p.is_null() || !p.is_aligned() {
        let error =
            Error::usage(format!("{} for {what}", if p.is_null() { "a null pointer" } else { "a wrong pointer" }));
        misuse(error.clone());
        return Err(error);
    }
    // SAFETY: not null; the caller promises the rest.
    Ok(unsafe { &*p })
}

/// Runs a function of a crossing object and makes a status of its result.
///
/// # Safety
/// As for `object`.
pub(crate) unsafe fn with<B, T>(p: *mut B, what: &str, f: impl FnOnce(&mut T) -> Result<()>) -> CarafeStatus {
    // SAFETY: passed on from the caller.
    guard(|| f(&mut unsafe { object::<B, T>(p, what)? }.turn(what)?.inner))
}

/// As `with`, for a function without a status: a failure is that of the call into the library, and `otherwise` is given.
///
/// # Safety
/// As for `object`.
pub(crate) unsafe fn ask<B, T, A>(p: *mut B, what: &str, otherwise: A, f: impl FnOnce(&mut T) -> A) -> A {
    let mut answer = otherwise;
    // SAFETY: passed on from the caller.
    let status = unsafe {
        with::<B, T>(p, what, |t| {
            answer = f(t);
            Ok(())
        })
    };
    if status != crate::tables::CARAFE_OK {
        misuse(Error::usage(crate::status::take_text()));
    }
    answer
}

/// Refuses memory that cannot be written to; asked before anything is done that could not be undone.
pub(crate) fn writable<T>(out: *mut T, what: &str) -> Result<()> {
    match (out.is_null(), out.is_aligned()) {
        (false, true) => Ok(()),
        (true, _) => Err(Error::usage(format!("a null pointer for {what}"))),
        (false, false) => Err(Error::usage(format!("a misaligned pointer for {what}"))),
    }
}

/// Writes an answer to the place that the other side gave.
///
/// # Safety
/// A pointer that is not null must be good for writing a `T`.
pub(crate) unsafe fn put<T>(out: *mut T, value: T, what: &str) -> Result<()> {
    writable(out, what)?;
    // SAFETY: not null and aligned; the caller promises the rest.
    unsafe { out.write(value) };
    Ok(())
}

/// A sink that the other side passed back; null is refused.
///
/// # Safety
/// A pointer that is not null must be the sink of the call that is running.
pub(crate) unsafe fn sink<'a, T>(p: *mut std::ffi::c_void) -> Result<&'a mut T> {
    let p = p.cast::<T>();
    if p.is_null() || !p.is_aligned() {
        let error = Error::usage("the sink that came back is not the one that was given");
        misuse(error.clone());
        return Err(error);
    }
    // SAFETY: the caller promises.
    Ok(unsafe { &mut *p })
}

/// A failure of a function that is called without an object.
pub(crate) fn refuse(error: &Error) -> CarafeStatus {
    set_text(&error.to_string());
    CARAFE_USAGE
}
