//! The outer form of an exported model: magic, format, writer's version, device, length and checksum in front of the
//! device's own payload, so that a foreign, stale or cut file is told apart before anything is read from it.

use carafe_graph::{Error, Result};
use std::io::Write;

const MAGIC: &[u8; 8] = b"CARAFEX\n";
const FORMAT: u32 = 1;

/// What stands in front of the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobHeader {
    /// The device that wrote it.
    pub device: String,
    /// Version of the engine that wrote it.
    pub version: String,
}

/// Writes header and payload.
pub fn write_blob(header: &BlobHeader, payload: &[u8], to: &mut dyn Write) -> Result<()> {
    let mut head = Vec::new();
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&FORMAT.to_le_bytes());
    for text in [&header.device, &header.version] {
        head.extend_from_slice(&(text.len() as u32).to_le_bytes());
        head.extend_from_slice(text.as_bytes());
    }
    head.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    head.extend_from_slice(&checksum(payload).to_le_bytes());
    // The payload starts on a 64-byte boundary, so that weights in it can be used where they lie.
    let pad = (head.len() + 1).next_multiple_of(64) - head.len();
    head.resize(head.len() + pad, 0);
    let at = head.len() - 1;
    head[at] = pad as u8;
    let write = |to: &mut dyn Write| to.write_all(&head).and_then(|()| to.write_all(payload));
    write(to).map_err(|e| Error::io("cannot write the exported model", &e))
}

/// Checks the header; gives it with the position of the payload.
pub fn read_blob(blob: &[u8], device: &str, version: &str) -> Result<(BlobHeader, std::ops::Range<usize>)> {
    let cut = || Error::invalid("the exported model is cut short");
    if !blob.starts_with(MAGIC) {
        return Err(Error::invalid("this is not an exported model: its first bytes differ"));
    }
    let mut at = MAGIC.len();
    let mut take = |n: usize| -> Result<&[u8]> {
        let part = at.checked_add(n).and_then(|end| blob.get(at..end)).ok_or_else(cut)?;
        at += n;
        Ok(part)
    };
    let format = u32::from_le_bytes(take(4)?.try_into().map_err(|_| cut())?);
    if format != FORMAT {
        return Err(Error::invalid(format!("the exported model has format {format}, this engine reads {FORMAT}")));
    }
    let mut text = || -> Result<String> {
        let n = u32::from_le_bytes(take(4)?.try_into().map_err(|_| cut())?) as usize;
        String::from_utf8(take(n)?.to_vec()).map_err(|_| Error::invalid("the exported model's header is damaged"))
    };
    let header = BlobHeader { device: text()?, version: text()? };
    if header.device != device {
        return Err(Error::invalid(format!("exported for device `{}`, imported into `{device}`", header.device)));
    }
    if header.version != version {
        return Err(Error::invalid(format!(
            "exported by version {}, this is {version}; compile again",
            header.version
        )));
    }
    let len = u64::from_le_bytes(take(8)?.try_into().map_err(|_| cut())?);
    let sum = u64::from_le_bytes(take(8)?.try_into().map_err(|_| cut())?);
    let start = (at + 1).next_multiple_of(64);
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len)).ok_or_else(cut)?;
    let payload = blob.get(start..end).ok_or_else(cut)?;
    if checksum(payload) != sum {
        return Err(Error::invalid("the exported model is damaged: its checksum differs"));
    }
    Ok((header, start..end))
}

// FNV-1a over 8-byte words: finds damage, not malice.
fn checksum(bytes: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        h = (h ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob() -> Vec<u8> {
        let mut out = Vec::new();
        let header = BlobHeader { device: "TEMPLATE".into(), version: "1".into() };
        write_blob(&header, b"payload", &mut out).unwrap();
        out
    }
    fn error(blob: &[u8], device: &str, version: &str) -> String {
        read_blob(blob, device, version).unwrap_err().to_string()
    }

    #[test]
    fn the_payload_comes_back_on_a_boundary() {
        let b = blob();
        let (_, range) = read_blob(&b, "TEMPLATE", "1").unwrap();
        assert_eq!((&b[range.clone()], range.start % 64), (&b"payload"[..], 0));
    }

    #[test]
    fn a_foreign_file_is_refused() {
        assert!(error(b"\x7fELF", "TEMPLATE", "1").contains("not an exported model"));
    }

    #[test]
    fn another_device_or_version_is_refused() {
        assert!(error(&blob(), "CPU", "1").contains("exported for device `TEMPLATE`"));
        assert!(error(&blob(), "TEMPLATE", "2").contains("exported by version 1"));
    }

    #[test]
    fn every_cut_and_every_flip_is_refused() {
        let b = blob();
        for n in 0..b.len() {
            assert!(read_blob(&b[..n], "TEMPLATE", "1").is_err(), "cut at {n}");
        }
        let mut damaged = b.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(error(&damaged, "TEMPLATE", "1").contains("checksum"));
    }
}
