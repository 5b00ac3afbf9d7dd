//! `ov_common.h`: texts of errors, and giving texts back.

use crate::heap;
use crate::status::{Status, guard_or, last_error, words};
use std::ffi::c_char;
use std::ptr;

/// A static text for a status.
#[unsafe(no_mangle)]
pub extern "C" fn ov_get_error_info(status: Status) -> *const c_char {
    words(status).as_ptr()
}

/// Frees a text that a function of the API gave.
#[unsafe(no_mangle)]
pub extern "C" fn ov_free(content: *const c_char) {
    heap::release(content);
}

/// A copy of the text of the last error of the process, or null.
#[unsafe(no_mangle)]
pub extern "C" fn ov_get_last_err_msg() -> *const c_char {
    guard_or(ptr::null(), || match last_error() {
        Some(text) => Ok(heap::text(&text)?.cast_const()),
        None => Ok(ptr::null()),
    })
}
