//! Flatbuffers, read in place. Every offset, length and vtable is checked when it is followed, so a damaged file gives an error
//! that says where. Tables may share parts, so a small file can describe a large tree: what is read in all is limited too.

use carafe_graph::{Error, Result};
use std::cell::Cell;

/// Times its own size that may be read out of a file.
const GROWTH: usize = 16;
/// Bytes that a table counts for, however small: what is made of it takes more.
const TABLE: usize = 64;
/// Bytes that may be read out of any file, however small.
const LEAST_BYTES: usize = 64 * 1024;

/// The bytes of a flatbuffer, and how much may still be read out of them.
pub(crate) struct Buffer<'a> {
    bytes: &'a [u8],
    left: Cell<usize>,
}

impl<'a> Buffer<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Buffer<'a> {
        Buffer { bytes, left: Cell::new(bytes.len().saturating_mul(GROWTH).saturating_add(LEAST_BYTES)) }
    }
    /// The table that the file begins with.
    pub(crate) fn root(&self) -> Result<Table<'_>> {
        Table::at(self, self.follow(0)?)
    }
    fn get<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let found = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        found.and_then(|b| b.try_into().ok()).ok_or_else(|| self.outside(at))
    }
    fn outside(&self, at: usize) -> Error {
        Error::invalid(format!("the flatbuffer is damaged: it points to byte {at} of {}", self.bytes.len()))
    }
    fn u32(&self, at: usize) -> Result<usize> {
        Ok(u32::from_le_bytes(self.get(at)?) as usize)
    }
    // Where an offset points that lies at `at`.
    fn follow(&self, at: usize) -> Result<usize> {
        at.checked_add(self.u32(at)?).ok_or_else(|| self.outside(at))
    }
    // First byte and count of a vector whose offset lies at `at`.
    fn vector(&self, at: usize, element: usize) -> Result<(usize, usize)> {
        let start = self.follow(at)?;
        let count = self.u32(start)?;
        let bytes = count.checked_mul(element).ok_or_else(|| self.outside(start))?;
        let inside = bytes <= self.bytes.len().saturating_sub(start).saturating_sub(4);
        if !inside {
            let size = self.bytes.len();
            return Err(Error::invalid(format!(
                "the flatbuffer is damaged: {count} elements at byte {start} lie beyond its {size} bytes"
            )));
        }
        Ok((start + 4, count))
    }
    fn spend(&self, bytes: usize) -> Result<()> {
        let left =
            self.left.get().checked_sub(bytes).ok_or_else(|| {
                Error::invalid(format!("the flatbuffer unfolds to more than {GROWTH} times its size"))
            })?;
        self.left.set(left);
        Ok(())
    }
}

/// A table of a flatbuffer: fields by number, each absent or somewhere in the table.
#[derive(Clone, Copy)]
pub(crate) struct Table<'b> {
    buffer: &'b Buffer<'b>,
    at: usize,
    vtable: usize,
    fields: usize,
}

/// Numbers that flatbuffers hold.
pub(crate) trait Scalar: Sized {
    const SIZE: usize;
    fn read(buffer: &Buffer<'_>, at: usize) -> Result<Self>;
}

macro_rules! scalars {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            const SIZE: usize = std::mem::size_of::<$t>();
            fn read(buffer: &Buffer<'_>, at: usize) -> Result<$t> {
                Ok(<$t>::from_le_bytes(buffer.get(at)?))
            }
        }
    )*};
}
scalars!(i8 u8 u16 i32 u32 i64 u64 f32);

impl<'b> Table<'b> {
    fn at(buffer: &'b Buffer<'b>, at: usize) -> Result<Table<'b>> {
        let back = i32::from_le_bytes(buffer.get(at)?);
        let vtable = (at as i64).checked_sub(i64::from(back)).and_then(|v| usize::try_from(v).ok());
        let vtable = vtable.ok_or_else(|| buffer.outside(at))?;
        let size = usize::from(u16::from_le_bytes(buffer.get(vtable)?));
        if size < 4 || vtable + size > buffer.bytes.len() {
            return Err(buffer.outside(vtable));
        }
        buffer.spend(TABLE)?;
        Ok(Table { buffer, at, vtable, fields: (size - 4) / 2 })
    }
    fn field(&self, id: usize) -> Result<Option<usize>> {
        if id >= self.fields {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.buffer.get(self.vtable + 4 + 2 * id)?);
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }
    /// A number, or its default.
    pub(crate) fn scalar<T: Scalar>(&self, id: usize, default: T) -> Result<T> {
        self.field(id)?.map_or(Ok(default), |at| T::read(self.buffer, at))
    }
    pub(crate) fn flag(&self, id: usize, default: bool) -> Result<bool> {
        Ok(self.scalar(id, u8::from(default))? != 0)
    }
    /// A table inside of it.
    pub(crate) fn table(&self, id: usize) -> Result<Option<Table<'b>>> {
        self.field(id)?.map(|at| Table::at(self.buffer, self.buffer.follow(at)?)).transpose()
    }
    /// A vector of tables; empty when it is absent.
    pub(crate) fn tables(&self, id: usize) -> Result<Vec<Table<'b>>> {
        let Some(at) = self.field(id)? else { return Ok(vec![]) };
        let (first, count) = self.buffer.vector(at, 4)?;
        self.buffer.spend(4 * count)?;
        (0..count).map(|i| Table::at(self.buffer, self.buffer.follow(first + 4 * i)?)).collect()
    }
    /// A vector of numbers; `None` when it is absent.
    pub(crate) fn numbers<T: Scalar>(&self, id: usize) -> Result<Option<Vec<T>>> {
        let Some(at) = self.field(id)? else { return Ok(None) };
        let (first, count) = self.buffer.vector(at, T::SIZE)?;
        self.buffer.spend(T::SIZE.max(4) * count)?;
        (0..count).map(|i| T::read(self.buffer, first + T::SIZE * i)).collect::<Result<_>>().map(Some)
    }
    /// Where the bytes of a vector lie: offset and length.
    pub(crate) fn span(&self, id: usize) -> Result<Option<(usize, usize)>> {
        self.field(id)?.map(|at| self.buffer.vector(at, 1)).transpose()
    }
    /// Counts bytes that will be copied out of the file.
    pub(crate) fn spend(&self, bytes: usize) -> Result<()> {
        self.buffer.spend(bytes)
    }
    /// A string; empty when it is absent.
    pub(crate) fn string(&self, id: usize) -> Result<String> {
        let Some((first, count)) = self.span(id)? else { return Ok(String::new()) };
        self.spend(count)?;
        Ok(String::from_utf8_lossy(&self.buffer.bytes[first..first + count]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A table with a number and a string: root offset, vtable, table, string.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![];
        bytes.extend(12u32.to_le_bytes());
        bytes.extend([8u16, 12, 4, 8].iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend(8i32.to_le_bytes());
        bytes.extend(7i32.to_le_bytes());
        bytes.extend(4u32.to_le_bytes());
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(b"ab\0\0");
        bytes
    }

    #[test]
    fn fields_are_read_and_absent_ones_have_their_default() {
        let bytes = sample();
        let buffer = Buffer::new(&bytes);
        let table = buffer.root().unwrap();
        assert_eq!(table.scalar::<i32>(0, 0).unwrap(), 7);
        assert_eq!(table.string(1).unwrap(), "ab");
        assert_eq!(table.scalar::<i32>(9, 5).unwrap(), 5);
    }

    #[test]
    fn every_change_of_a_byte_gives_a_value_or_an_error() {
        for at in 0..sample().len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = sample();
                bytes[at] = value;
                let buffer = Buffer::new(&bytes);
                let Ok(table) = buffer.root() else { continue };
                let _ = (table.scalar::<i32>(0, 0), table.string(1), table.tables(1), table.numbers::<i64>(1));
            }
        }
    }

    #[test]
    fn a_vector_beyond_the_file_is_refused() {
        let mut bytes = sample();
        bytes[24] = 200;
        let e = Buffer::new(&bytes).root().unwrap().string(1).unwrap_err().to_string();
        assert!(e.contains("200 elements at byte 24 lie beyond its 32 bytes"), "{e}");
    }
}
