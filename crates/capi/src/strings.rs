//! Tensors of texts. `ov_tensor_data` of one gives an array of `std::string`, which C++ programs look into; this file lays
//! the texts out as the C++ library of GNU does: a pointer, a length, and 16 bytes that hold short texts or the capacity.

use crate::heap;
use crate::status::Outcome;
use std::ffi::c_void;

const LOCAL: usize = 16;

/// A `std::string` of libstdc++. One of up to 15 bytes points into itself, so it must not move.
#[repr(C)]
#[derive(Debug)]
struct CxxString {
    start: *mut u8,
    len: usize,
    local: [u8; LOCAL],
}

/// An array of them.
#[derive(Debug)]
pub(crate) struct CxxStrings(Box<[CxxString]>);

// SAFETY: the array owns the texts, and is only reached under the lock of its tensor.
unsafe impl Send for CxxStrings {}

/// Bytes of each in the array.
pub(crate) const STRING_BYTES: usize = size_of::<CxxString>();

impl CxxStrings {
    pub(crate) fn new(texts: &[impl AsRef<str>]) -> Outcome<CxxStrings> {
        let empty = || CxxString { start: std::ptr::null_mut(), len: 0, local: [0; LOCAL] };
        let mut all = CxxStrings(texts.iter().map(|_| empty()).collect());
        for (one, text) in all.0.iter_mut().zip(texts) {
            let text = text.as_ref().as_bytes();
            if text.len() < LOCAL {
                one.local[..text.len()].copy_from_slice(text);
                one.start = one.local.as_mut_ptr();
            } else {
                let with_end: Vec<u8> = text.iter().copied().chain([0]).collect();
                one.start = heap::list(&with_end)?;
                one.local[..size_of::<usize>()].copy_from_slice(&text.len().to_ne_bytes());
            }
            one.len = text.len();
        }
        Ok(all)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// The texts; bytes that are no UTF-8 are replaced.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |one: &CxxString| match one.start.is_null() {
            true => String::new(),
            // SAFETY: `start` and `len` are those of `new`, or of a program that assigned to the `std::string`, which
            // keeps them right.
            false => String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(one.start, one.len) }).into_owned(),
        };
        self.0.iter().map(text).collect()
    }
}

impl Drop for CxxStrings {
    fn drop(&mut self) {
        for one in &mut self.0 {
            if one.start != one.local.as_mut_ptr() {
                heap::release(one.start);
            }
        }
    }
}
