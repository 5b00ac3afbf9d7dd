//! Text and lists as they cross: pointers with lengths, checked before they are believed.

use crate::memory::readable;
use crate::tables::CarafeStr;
use carafe_graph::{Error, Result};
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::sync::Mutex;

/// More elements than this are taken for a damaged list.
const MOST_ITEMS: usize = 1 << 24;
/// More ports or attributes than this in the declaration of an operation are taken for a damaged table.
pub(crate) const MOST_DECLARED: usize = 4096;

impl CarafeStr {
    pub const EMPTY: CarafeStr = CarafeStr { data: std::ptr::null(), len: 0 };

    /// Borrows; the other side must not use it longer than `text` lives.
    pub const fn of(text: &str) -> CarafeStr {
        CarafeStr { data: text.as_ptr().cast(), len: text.len() }
    }
}

/// The same text for as long as the process lives; equal texts are kept once.
pub(crate) fn forever(s: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(known) = kept.get(s) {
        return known;
    }
    let new: &'static str = Box::leak(s.to_string().into_boxed_str());
    kept.insert(new);
    new
}

/// Text that the other side handed over.
///
/// # Safety
/// A pointer that is not null must reach `len` bytes that stay for `'a`.
pub(crate) unsafe fn text<'a>(s: CarafeStr, what: &str) -> Result<&'a str> {
    // SAFETY: passed on from the caller.
    let bytes = unsafe { slice(s.data.cast::<u8>(), s.len, what)? };
    std::str::from_utf8(bytes).map_err(|_| Error::invalid(format!("{what} is not UTF-8")))
}

/// A zero-terminated text that must be there.
///
/// # Safety
/// A pointer that is not null must reach a zero-terminated text that stays for `'a`.
pub(crate) unsafe fn c_text<'a>(p: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: passed on from the caller.
    unsafe { opt_c_text(p, what)? }.ok_or_else(|| Error::invalid(format!("{what} is a null pointer")))
}

/// A zero-terminated text that may be null.
///
/// # Safety
/// As for `c_text`.
pub(crate) unsafe fn opt_c_text<'a>(p: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if p.is_null() {
        return Ok(None);
    }
    readable(p, 1, what)?;
    // SAFETY: not null, and terminated as the caller promises.
    let text = unsafe { CStr::from_ptr(p) };
    text.to_str().map(Some).map_err(|_| Error::invalid(format!("{what} is not UTF-8")))
}

/// A list that the other side handed over; null is good for an empty one.
///
/// # Safety
/// A pointer that is not null must reach `n` elements that stay for `'a`.
pub(crate) unsafe fn slice<'a, T>(p: *const T, n: usize, what: &str) -> Result<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    if p.is_null() {
        return Err(Error::invalid(format!("{what}: {n} elements at a null pointer")));
    }
    if n > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Error::invalid(format!("{what}: {n} elements cannot be")));
    }
    if !p.is_aligned() {
        return Err(Error::invalid(format!("{what}: misaligned pointer")));
    }
    // SAFETY: not null, aligned, of a possible size; the caller promises the elements.
    Ok(unsafe { std::slice::from_raw_parts(p, n) })
}

/// As `items`, for the declaration of an operation.
///
/// # Safety
/// As for `slice`.
pub(crate) unsafe fn declared<'a, T>(p: *const T, n: usize, what: &str) -> Result<&'a [T]> {
    if n > MOST_DECLARED {
        return Err(Error::invalid(format!("{what}: {n} elements, an operation declares at most {MOST_DECLARED}")));
    }
    if !p.is_null() {
        readable(p, n * size_of::<T>(), what)?;
    }
    // SAFETY: passed on from the caller.
    unsafe { slice(p, n, what) }
}

/// As `slice`, for lists that are not weights.
///
/// # Safety
/// As for `slice`.
pub(crate) unsafe fn items<'a, T>(p: *const T, n: usize, what: &str) -> Result<&'a [T]> {
    if n > MOST_ITEMS {
        return Err(Error::invalid(format!("{what}: {n} elements, at most {MOST_ITEMS} are believed")));
    }
    // SAFETY: passed on from the caller.
    unsafe { slice(p, n, what) }
}
