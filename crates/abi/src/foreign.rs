//! Tensors over memory of the other side.

use crate::convert::{tensor_head, tensor_of};
use crate::library::Library;
use crate::tables::*;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, SharedBytes, Tensor};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Memory of the other side, given back when the last tensor over it goes.
pub(crate) struct ForeignBytes {
    data: *const u8,
    len: usize,
    owner: *mut c_void,
    release: unsafe extern "C" fn(owner: *mut c_void),
    /// Whether the bytes are ours to give back yet.
    taken: AtomicBool,
    /// Kept mapped until the release has run.
    library: Option<Arc<Library>>,
}

// SAFETY: the bytes are only read, and the contract of `CarafeRelease` lets `release` run on any thread.
unsafe impl Send for ForeignBytes {}
// SAFETY: as above.
unsafe impl Sync for ForeignBytes {}

impl AsRef<[u8]> for ForeignBytes {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `foreign_tensor` checked for null; the maker keeps the bytes until `release`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl Drop for ForeignBytes {
    fn drop(&mut self) {
        if !*self.taken.get_mut() {
            return;
        }
        // SAFETY: called once, with the owner that came with the bytes.
        let give_back = || unsafe { (self.release)(self.owner) };
        match &self.library {
            Some(library) => library.notify("release", give_back),
            None => give_back(),
        }
    }
}

/// A tensor over memory of the other side, not copied. Strings are copied and released at once. On failure nothing was
/// taken: `release` is not called.
///
/// # Safety
/// The pointers must reach what the tensor says until `release(owner)`.
pub(crate) unsafe fn foreign_tensor(
    t: &CarafeTensor,
    owner: *mut c_void,
    release: CarafeRelease,
    library: Option<Arc<Library>>,
) -> Result<Tensor> {
    let release = release.ok_or_else(|| Error::usage("memory is given without a function that releases it"))?;
    // SAFETY: passed on from the caller.
    let (ty, shape) = unsafe { tensor_head(t)? };
    if t.bytes > 0 && t.data.is_null() {
        return Err(Error::invalid(format!("{} bytes of a tensor at a null pointer", t.bytes)));
    }
    // SAFETY: passed on from the caller.
    let copied = if ty == ElementType::String { Some(unsafe { tensor_of(t)? }) } else { None };
    let taken = AtomicBool::new(false);
    let bytes = Arc::new(ForeignBytes { data: t.data.cast(), len: t.bytes, owner, release, taken, library });
    let tensor = match copied {
        Some(strings) => strings,
        None => Tensor::view(ty, shape, &SharedBytes::from_owner(bytes.clone()), 0, t.bytes)?,
    };
    bytes.taken.store(true, Ordering::Release);
    Ok(tensor)
}
