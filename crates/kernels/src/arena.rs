//! Memory of one request: a buffer whose parts were planned at compile time. A step borrows the parts it reads and the
//! parts it writes at once; that they do not overlap is checked each time, so a wrong plan panics instead of corrupting.

use crate::Buffer;

/// Most parts of one borrow.
pub const MAX_PARTS: usize = 128;

/// A range of bytes in the arena; starts are multiples of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Part {
    pub start: usize,
    pub len: usize,
}

impl Part {
    pub fn end(&self) -> usize {
        self.start + self.len
    }
    pub fn overlaps(&self, other: &Part) -> bool {
        self.start < other.end() && other.start < self.end() && self.len > 0 && other.len > 0
    }
}

/// Planned memory.
#[derive(Debug)]
pub struct Arena {
    buffer: Buffer,
}

impl Arena {
    /// `None` when the memory cannot be had.
    pub fn new(bytes: usize) -> Option<Arena> {
        Some(Arena { buffer: Buffer::zeroed(bytes)? })
    }
    pub fn len(&self) -> usize {
        self.buffer.len()
    }
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
    /// One part for reading.
    pub fn read(&self, part: Part) -> &[u8] {
        &self.buffer.as_bytes()[part.start..part.end()]
    }
    /// One part for writing.
    pub fn write(&mut self, part: Part) -> &mut [u8] {
        &mut self.buffer.as_bytes_mut()[part.start..part.end()]
    }
    /// Parts to read and parts to write at the same time, handed to `with` in order. Panics when a written part overlaps
    /// any other.
    pub fn borrow<R>(
        &mut self,
        reads: &[Part],
        writes: &[Part],
        with: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> R,
    ) -> R {
        assert!(reads.len() <= MAX_PARTS && writes.len() <= MAX_PARTS, "too many parts");
        let total = self.buffer.len();
        for (i, w) in writes.iter().enumerate() {
            assert!(w.end() <= total, "part {w:?} of {total} bytes");
            let free = |o: &Part| !w.overlaps(o);
            assert!(reads.iter().all(free) && writes[i + 1..].iter().all(free), "a written part is used twice");
        }
        assert!(reads.iter().all(|r| r.end() <= total), "a part outside {total} bytes");
        let start = self.buffer.as_bytes_mut().as_mut_ptr();
        let mut read: [&[u8]; MAX_PARTS] = [&[]; MAX_PARTS];
        for (slot, r) in read.iter_mut().zip(reads) {
            // SAFETY: inside the buffer, which `&mut self` keeps for us; no written part overlaps it (checked above).
            *slot = unsafe { std::slice::from_raw_parts(start.add(r.start), r.len) };
        }
        let mut write: [&mut [u8]; MAX_PARTS] = std::array::from_fn(|_| Default::default());
        for (slot, w) in write.iter_mut().zip(writes) {
            // SAFETY: inside the buffer, and overlapping neither a read nor another written part (checked above).
            *slot = unsafe { std::slice::from_raw_parts_mut(start.add(w.start), w.len) };
        }
        with(&read[..reads.len()], &mut write[..writes.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_borrowed_together() {
        let mut arena = Arena::new(256).unwrap();
        arena.write(Part { start: 0, len: 4 }).copy_from_slice(&[1, 2, 3, 4]);
        let (r, w) = (Part { start: 0, len: 4 }, Part { start: 64, len: 4 });
        arena.borrow(&[r, r], &[w], |reads, writes| {
            assert_eq!(reads[0], reads[1]);
            writes[0].copy_from_slice(reads[0]);
        });
        assert_eq!(arena.read(w), [1, 2, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "used twice")]
    fn an_overlap_is_refused() {
        let p = |start| Part { start, len: 100 };
        Arena::new(256).unwrap().borrow(&[p(0)], &[p(64)], |_, _| ());
    }
}
