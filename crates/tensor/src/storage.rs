//! Owns the bytes under tensors: aligned buffers, vectors, mapped files, foreign owners. All `unsafe` of the crate is here.
//! Shared bytes never move or change while a clone is alive, but a mapped file can be changed by another process.
#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::TensorError;
use crate::memory::ensure_pages;

/// Alignment of buffers allocated here: a cache line, and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

/// Larger requests are refused before the allocator sees them: an overcommitting system would grant them.
const MAX_BYTES: usize = 1 << 44;

/// Bytes behind an `Arc`: an owned aligned buffer, a mapped file, or any borrowed owner. Cheap to clone.
#[derive(Clone)]
pub struct SharedBytes(Arc<dyn ByteOwner>);

/// Keeps the vector.
impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        SharedBytes::from_vec(bytes)
    }
}
/// Copies the slice.
impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        SharedBytes::from_vec(bytes.to_vec())
    }
}
/// Keeps the text.
impl From<String> for SharedBytes {
    fn from(text: String) -> Self {
        SharedBytes::from_vec(text.into_bytes())
    }
}
/// Copies the text.
impl From<&str> for SharedBytes {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl SharedBytes {
    /// Maps a file for reading; its pages are loaded on first use. The file must not be truncated while mapped.
    pub fn map_file(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only, and only handed out as `&[u8]`. That nobody truncates or
        // rewrites the file meanwhile is asked of the caller above; no lock that would enforce it exists on Linux.
        let map = unsafe { memmap2::Mmap::map(file)? };
        Ok(SharedBytes(Arc::new(map)))
    }

    /// Keeps the vector; its bytes are not copied.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        SharedBytes(Arc::new(PodVec(bytes)))
    }

    /// Keeps a foreign owner alive and reads through it. `as_ref` must give the same bytes every time; if it does not,
    /// tensor accessors fail or panic, but stay memory safe.
    pub fn from_owner(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        SharedBytes(Arc::new(Foreign(owner)))
    }

    /// Memory of another owner that may be written to while this is the only handle, kept alive by `keep`.
    ///
    /// # Safety
    ///
    /// `start` must point to `len` initialised bytes that live as long as `keep`. While a handle lives, others may touch them only
    /// when nobody uses the handle: neither reads through it nor writes.
    pub unsafe fn from_raw_mut(start: NonNull<u8>, len: usize, keep: Arc<dyn Any + Send + Sync>) -> Self {
        SharedBytes(Arc::new(Lent { start, len, _keep: keep }))
    }

    /// Zeroed bytes at a 64-byte boundary. A size that cannot be had is an error, never an abort.
    pub fn zeroed(len: usize) -> Result<Self, TensorError> {
        Ok(SharedBytes(Arc::new(AlignedBuffer::zeroed(len)?)))
    }

    /// Keeps a vector of plain values as bytes; nothing is copied.
    pub(crate) fn from_pod_vec<T: bytemuck::Pod + Send + Sync>(values: Vec<T>) -> Self {
        SharedBytes(Arc::new(PodVec(values)))
    }

    /// A part of these bytes, where they lie; `None` when the range is not inside.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        self.as_slice().get(range.clone())?;
        Some(SharedBytes(Arc::new(Part { owner: self.0.clone(), range })))
    }

    /// All bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Whether they are mapped from a file.
    pub fn is_mapped(&self) -> bool {
        self.0.is_mapped()
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets the system take back the memory behind a range of a mapped file, which is read again on the next use; does
    /// nothing to other owners. For those who are done with large weights.
    pub fn release(&self, offset: usize, len: usize) {
        if offset.checked_add(len).is_some_and(|end| end <= self.len()) {
            self.0.release(offset, len);
        }
    }

    /// The bytes for writing, when this is the only handle and the owner can be written.
    pub(crate) fn unique_mut(&mut self) -> Option<&mut [u8]> {
        Arc::get_mut(&mut self.0)?.bytes_mut()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBytes").field("len", &self.len()).field("mapped", &self.is_mapped()).finish()
    }
}

trait ByteOwner: Send + Sync {
    fn bytes(&self) -> &[u8];
    /// `None` when the bytes are read-only by nature.
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
    fn is_mapped(&self) -> bool {
        false
    }
    /// The range lies within the bytes.
    fn release(&self, _offset: usize, _len: usize) {}
}

impl ByteOwner for memmap2::Mmap {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn is_mapped(&self) -> bool {
        true
    }
    #[cfg(unix)]
    fn release(&self, offset: usize, len: usize) {
        // SAFETY: the mapping is of a file and nobody writes to it, so pages that are dropped come back from the file
        // with the same bytes. It is only advice: that the system did not take it is no failure.
        let _ = unsafe { self.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, len) };
    }
}

struct Foreign(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl ByteOwner for Foreign {
    fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Memory that another owner lends for writing.
struct Lent {
    start: NonNull<u8>,
    len: usize,
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: plain bytes, which nobody else touches while they are used here: the caller of `from_raw_mut` promised it.
unsafe impl Send for Lent {}
// SAFETY: as above; `&Lent` only reads.
unsafe impl Sync for Lent {}

impl ByteOwner for Lent {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes that `_keep` keeps alive, by the promise of `from_raw_mut`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: as in `bytes`; `&mut self` makes this the only reference of ours, and the promise covers the others.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }
}

struct Part {
    owner: Arc<dyn ByteOwner>,
    range: Range<usize>,
}

impl ByteOwner for Part {
    fn bytes(&self) -> &[u8] {
        &self.owner.bytes()[self.range.clone()]
    }
    fn is_mapped(&self) -> bool {
        self.owner.is_mapped()
    }
}

struct PodVec<T>(Vec<T>);

impl<T: bytemuck::Pod + Send + Sync> ByteOwner for PodVec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(bytemuck::cast_slice_mut(&mut self.0))
    }
}

/// `len` initialised bytes at a 64-byte boundary, freed on drop.
struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer is plain bytes owned by this value alone; writing needs `&mut`.
unsafe impl Send for AlignedBuffer {}
// SAFETY: as above; `&AlignedBuffer` only reads.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    fn zeroed(len: usize) -> Result<Self, TensorError> {
        let failed = TensorError::OutOfMemory { bytes: len };
        if len > MAX_BYTES || ensure_pages(len).is_err() {
            return Err(failed);
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a size of at least one alignment unit, so it is not zero-sized.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        NonNull::new(start).map(|start| AlignedBuffer { start, len }).ok_or(failed)
    }

    /// Never zero-sized, so that an empty tensor too has an address of its own.
    fn layout(len: usize) -> Layout {
        let size = len.max(1).next_multiple_of(ALIGNMENT);
        Layout::from_size_align(size, ALIGNMENT).expect("len is at most MAX_BYTES, checked in zeroed")
    }
}

impl ByteOwner for AlignedBuffer {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `start` points to at least `len` bytes, initialised by alloc_zeroed and alive until drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: as in `bytes`; `&mut self` makes this the only reference.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from alloc_zeroed with this same layout, and is freed only here.
        unsafe { alloc::dealloc(self.start.as_ptr(), Self::layout(self.len)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_bytes_are_aligned_and_zero() {
        for len in [0, 1, 64, 65, 1000] {
            let bytes = SharedBytes::zeroed(len).unwrap();
            assert_eq!(bytes.as_slice().as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(bytes.as_slice(), vec![0; len]);
        }
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        assert_eq!(SharedBytes::zeroed(usize::MAX).unwrap_err(), TensorError::OutOfMemory { bytes: usize::MAX });
        assert!(SharedBytes::zeroed(MAX_BYTES + 1).is_err());
    }

    #[test]
    fn released_bytes_read_the_same() {
        let path = std::env::temp_dir().join(format!("carafe-release-{}", std::process::id()));
        std::fs::write(&path, vec![7; 3 << 12]).unwrap();
        let bytes = SharedBytes::map_file(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        for (offset, len) in [(0, 3 << 12), (100, 5000), (0, 0), (1, usize::MAX), (4 << 12, 1)] {
            bytes.release(offset, len);
            assert_eq!(bytes.as_slice(), vec![7; 3 << 12]);
        }
        let owned = SharedBytes::from_vec(vec![1; 1 << 16]);
        owned.release(0, 1 << 16);
        assert_eq!(owned.as_slice(), vec![1; 1 << 16]);
    }

    #[test]
    fn from_vec_keeps_the_vector_in_place() {
        let vec = vec![1u8, 2, 3];
        let address = vec.as_ptr();
        assert_eq!(SharedBytes::from_vec(vec).as_slice().as_ptr(), address);
    }

    #[test]
    fn from_owner_reads_through_the_owner() {
        let bytes = SharedBytes::from_owner(Arc::new(vec![1u8, 2]));
        assert_eq!(bytes.as_slice(), [1, 2]);
        assert!(!bytes.is_mapped());
    }

    #[test]
    fn a_part_lies_where_the_whole_does_and_is_never_written() {
        let whole = SharedBytes::from_vec(vec![1, 2, 3, 4]);
        let address = whole.as_slice()[1..].as_ptr();
        let mut part = whole.part(1..3).unwrap();
        drop(whole);
        assert_eq!((part.as_slice(), part.as_slice().as_ptr()), (&[2, 3][..], address));
        assert!(part.unique_mut().is_none() && part.part(1..3).is_none());
    }

    #[test]
    fn only_a_single_handle_can_be_written() {
        let mut bytes = SharedBytes::zeroed(4).unwrap();
        assert!(bytes.unique_mut().is_some());
        let other = bytes.clone();
        assert!(bytes.unique_mut().is_none());
        drop(other);
        assert!(bytes.unique_mut().is_some());
    }

    #[test]
    fn lent_memory_is_written_where_it_lies() {
        let mut memory = Box::new([1u8, 2, 3]);
        // SAFETY: the box outlives the handle and is not looked at meanwhile.
        let mut bytes = unsafe { SharedBytes::from_raw_mut(NonNull::from(&mut *memory).cast(), 3, Arc::new(())) };
        bytes.unique_mut().unwrap()[1] = 9;
        let other = bytes.clone();
        assert!(bytes.unique_mut().is_none());
        drop((bytes, other));
        assert_eq!(*memory, [1, 9, 3]);
    }

    #[test]
    fn a_foreign_owner_is_never_written() {
        assert!(SharedBytes::from_owner(Arc::new(vec![1u8])).unique_mut().is_none());
    }
}
