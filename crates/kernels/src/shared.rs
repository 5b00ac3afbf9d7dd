//! One output written by many threads, each its own part.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice whose parts are handed to threads that promise not to overlap.
#[derive(Debug)]
pub struct SharedMut<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<T> Clone for SharedMut<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedMut<'_, T> {}

// SAFETY: it stands for a `&mut [T]`; every access goes through `part`, whose callers promise disjoint parts.
unsafe impl<T: Send> Send for SharedMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        SharedMut { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The start, for kernels that compute addresses themselves.
    pub fn as_ptr(&self) -> *mut T {
        self.start
    }
    /// # Safety
    /// While the part lives, nobody else reads or writes any element of it.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "part {range:?} of {}", self.len);
        // SAFETY: inside the slice by the check above; alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

/// Range `i` of `total` things split into `parts` nearly equal ranges.
pub fn part_of(total: usize, parts: usize, i: usize) -> Range<usize> {
    let (base, more) = (total / parts, total % parts);
    let start = i * base + i.min(more);
    start..start + base + usize::from(i < more)
}
