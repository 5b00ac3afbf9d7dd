//! Parts of an exported model: bytes one after another, each at a boundary, so that weights are used where they lie.

use crate::Port;
use carafe_graph::{Error, Result};
use carafe_tensor::SharedBytes;
use std::ops::Range;

/// Parts begin at multiples of this from the start of the payload.
const BOUNDARY: usize = 64;

/// Puts parts one behind the other.
#[derive(Debug, Default)]
pub struct PartsWriter {
    /// What was put so far.
    pub payload: Vec<u8>,
}

impl PartsWriter {
    /// A length, blanks up to a boundary, the bytes, blanks up to a boundary.
    pub fn put(&mut self, bytes: &[u8]) {
        let payload = &mut self.payload;
        payload.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        payload.resize(payload.len().next_multiple_of(BOUNDARY), 0);
        payload.extend_from_slice(bytes);
        payload.resize(payload.len().next_multiple_of(BOUNDARY), 0);
    }
    /// The names of ports: passes may have given a value more names than the model's input or output has.
    pub fn put_names<'a>(&mut self, ports: impl IntoIterator<Item = &'a Port>) {
        for port in ports {
            self.put(port.name.as_bytes());
            self.put(port.names.iter().map(String::as_str).collect::<Vec<_>>().join("\n").as_bytes());
        }
    }
}

/// Takes what [`PartsWriter`] put, in the same order.
#[derive(Debug)]
pub struct PartsReader<'a> {
    blob: &'a SharedBytes,
    start: usize,
    at: usize,
    end: usize,
}

impl PartsReader<'_> {
    /// Of this range of a blob.
    pub fn new(blob: &SharedBytes, payload: Range<usize>) -> PartsReader<'_> {
        PartsReader { blob, start: payload.start, at: payload.start, end: payload.end }
    }
    /// The next part, where it lies.
    pub fn take(&mut self) -> Result<SharedBytes> {
        let cut = || Error::invalid("the exported model is cut short");
        let bytes = self.blob.as_slice();
        let round = |n: usize| Some(self.start + n.checked_sub(self.start)?.checked_next_multiple_of(BOUNDARY)?);
        let head = self.at.checked_add(8).filter(|e| *e <= self.end).ok_or_else(cut)?;
        let len = u64::from_le_bytes(bytes[self.at..head].try_into().map_err(|_| cut())?);
        let from = round(head).ok_or_else(cut)?;
        let to = usize::try_from(len).ok().and_then(|n| from.checked_add(n)).filter(|e| *e <= self.end);
        let to = to.ok_or_else(cut)?;
        self.at = round(to).ok_or_else(cut)?.min(self.end);
        self.blob.part(from..to).ok_or_else(cut)
    }
    /// The next part as text.
    pub fn text(&mut self) -> Result<String> {
        let bytes = self.take()?;
        let text = std::str::from_utf8(bytes.as_slice());
        Ok(text.map_err(|_| Error::invalid("the exported model is damaged: its text is not UTF-8"))?.to_string())
    }
    /// The names of ports.
    pub fn names<'a>(&mut self, ports: impl IntoIterator<Item = &'a mut Port>) -> Result<()> {
        for port in ports {
            port.name = self.text()?;
            port.names = self.text()?.split('\n').filter(|n| !n.is_empty()).map(str::to_string).collect();
        }
        Ok(())
    }
}
