//! Memory that goes to the caller and is freed by him: from `malloc`, so that `ov_free` and a plain `free` both do.

use crate::status::{Failure, Outcome};
use std::ffi::{c_char, c_void};

const NOT_ALLOCATED: i32 = -10;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// A copy of a list; null for none.
pub(crate) fn list<T: Copy>(values: &[T]) -> Outcome<*mut T> {
    if values.is_empty() {
        return Ok(std::ptr::null_mut());
    }
    // SAFETY: the size is that of a slice, so it is neither zero nor beyond what memory can have.
    let memory = unsafe { malloc(size_of_val(values)) }.cast::<T>();
    if memory.is_null() {
        return Err(Failure::new(NOT_ALLOCATED, format!("{} bytes cannot be allocated", size_of_val(values))));
    }
    // SAFETY: malloc gave fresh memory of this size, aligned for every plain type.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), memory, values.len()) };
    Ok(memory)
}

/// A copy of a text with a zero behind it. What stands behind a zero inside of it is not seen by C.
pub(crate) fn text(text: &str) -> Outcome<*mut c_char> {
    let bytes: Vec<u8> = text.bytes().chain([0]).collect();
    Ok(list(&bytes)?.cast())
}

/// Gives memory of this file back; null is nothing.
pub(crate) fn release<T>(memory: *const T) {
    // SAFETY: the caller of the API gives back what a function of it gave, once; `free` takes null.
    unsafe { free(memory.cast_mut().cast()) };
}
