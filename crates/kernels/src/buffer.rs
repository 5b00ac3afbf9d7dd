//! Zeroed memory at a 64-byte boundary. Large buffers are cut from regions of mapped memory that ask for huge pages.

mod regions;

use regions::Cut;
use std::fmt;

/// Sizes from here on are cut from regions.
const MAPPED: usize = 256 << 10;

/// A run of zeroed bytes, aligned to 64, fixed in size.
pub struct Buffer {
    memory: Memory,
    len: usize,
}

enum Memory {
    Mapped(Cut),
    Owned(Vec<Line>),
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

// SAFETY: 64 plain bytes, and the alignment adds no padding to a size of 64.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Line {}

impl Buffer {
    /// `None` when the memory cannot be had.
    pub fn zeroed(len: usize) -> Option<Buffer> {
        let memory = if len >= MAPPED {
            Memory::Mapped(Cut::zeroed(len)?)
        } else {
            Memory::Owned(vec![Line([0; 64]); len.div_ceil(64)])
        };
        Some(Buffer { memory, len })
    }
    /// Zeroed floats.
    pub fn floats(len: usize) -> Option<Buffer> {
        Buffer::zeroed(len.checked_mul(4)?)
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub fn as_bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Mapped(cut) => cut.bytes(),
            Memory::Owned(v) => &bytemuck::cast_slice(v)[..self.len],
        }
    }
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Mapped(cut) => cut.bytes_mut(),
            Memory::Owned(v) => &mut bytemuck::cast_slice_mut(v)[..self.len],
        }
    }
    pub fn as_floats(&self) -> &[f32] {
        bytemuck::cast_slice(&self.as_bytes()[..self.len / 4 * 4])
    }
    pub fn as_floats_mut(&mut self) -> &mut [f32] {
        let whole = self.len / 4 * 4;
        bytemuck::cast_slice_mut(&mut self.as_bytes_mut()[..whole])
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}
