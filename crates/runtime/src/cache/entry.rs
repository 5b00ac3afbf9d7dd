//! One file of the cache: a header, then what the device exported, from a 64-byte boundary on. The header is written last,
//! so that a file whose writing was broken off has none.

use carafe_graph::{Error, Result};
use carafe_tensor::{Hash128, SharedBytes, files};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

const MAGIC: &[u8; 8] = b"CARAFEC\n";
const FORMAT: u32 = 1;
const ALIGNMENT: usize = 64;
/// Texts longer than this are cut; they are for people.
const LONGEST: usize = 200;
/// No header is longer: fixed fields and three texts.
const MOST: usize = 1024;

/// Who wrote an entry, for whom, and what of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// The device it was compiled for.
    pub device: String,
    /// Version of the engine that wrote it.
    pub version: String,
    /// Name of the model.
    pub model: String,
}

impl EntryInfo {
    /// What the header of an entry says; `bytes` begin as its file does.
    pub fn of(bytes: &[u8]) -> Result<EntryInfo> {
        Ok(parse(bytes)?.info)
    }
}

pub(super) struct Header {
    pub(super) info: EntryInfo,
    key: u128,
    payload: Range<usize>,
    sum: u128,
}

/// Writes an entry to a new file.
pub(super) fn write<W: Write + Seek>(
    file: W,
    key: u128,
    info: &EntryInfo,
    export: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<u64> {
    let failed = |e: io::Error| Error::io("cannot write", &e);
    let room = head(key, info, 0, 0).len();
    let mut out = Summed { out: BufWriter::with_capacity(1 << 20, file), hash: Hash128::default(), len: 0 };
    out.out.write_all(&vec![0; room]).map_err(failed)?;
    export(&mut out)?;
    out.out.flush().map_err(failed)?;
    let mut file = out.out.into_inner().map_err(|e| failed(e.into_error()))?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    file.write_all(&head(key, info, out.len, out.hash.finish())).and_then(|()| file.flush()).map_err(failed)?;
    Ok(room as u64 + out.len)
}

struct Summed<W: Write> {
    out: BufWriter<W>,
    hash: Hash128,
    len: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.hash.bytes(&bytes[..n]);
        self.len += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn head(key: u128, info: &EntryInfo, len: u64, sum: u128) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&FORMAT.to_le_bytes());
    head.extend_from_slice(&key.to_le_bytes());
    head.extend_from_slice(&len.to_le_bytes());
    head.extend_from_slice(&sum.to_le_bytes());
    for text in [&info.device, &info.version, &info.model] {
        let text = cut(text);
        head.extend_from_slice(&(text.len() as u16).to_le_bytes());
        head.extend_from_slice(text.as_bytes());
    }
    head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
    head
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(LONGEST)).rev().find(|i| text.is_char_boundary(*i));
    &text[..end.unwrap_or(0)]
}

/// Reads the header of a file; `None` when the file is not an entry.
pub(super) fn read_info(path: &Path) -> Option<EntryInfo> {
    let mut head = Vec::new();
    let file = files::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.take(MOST as u64).read_to_end(&mut head).ok()?;
    let header = parse(&head).ok()?;
    (header.payload.end as u64 == len).then_some(header.info)
}

fn parse(bytes: &[u8]) -> Result<Header> {
    let cut = || Error::invalid("it is cut short");
    let mut at = 0usize;
    let mut take = |n: usize| -> Result<&[u8]> {
        let part = at.checked_add(n).and_then(|end| bytes.get(at..end)).ok_or_else(cut)?;
        at += n;
        Ok(part)
    };
    if take(8)? != MAGIC {
        return Err(Error::invalid("it is not a file of the cache"));
    }
    let format = u32::from_le_bytes(take(4)?.try_into().map_err(|_| cut())?);
    if format != FORMAT {
        return Err(Error::invalid(format!("it has format {format}, this engine reads {FORMAT}")));
    }
    let key = u128::from_le_bytes(take(16)?.try_into().map_err(|_| cut())?);
    let len = u64::from_le_bytes(take(8)?.try_into().map_err(|_| cut())?);
    let sum = u128::from_le_bytes(take(16)?.try_into().map_err(|_| cut())?);
    let mut text = || -> Result<String> {
        let n = u16::from_le_bytes(take(2)?.try_into().map_err(|_| cut())?);
        String::from_utf8(take(n.into())?.to_vec()).map_err(|_| Error::invalid("its header is damaged"))
    };
    let info = EntryInfo { device: text()?, version: text()?, model: text()? };
    let start = at.next_multiple_of(ALIGNMENT);
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len)).ok_or_else(cut)?;
    Ok(Header { info, key, payload: start..end, sum })
}

/// The payload of an entry, checked. It is read, not mapped: another process may cut the file short at any time, and a mapping
/// would then end this one.
pub(super) fn payload(file: &File, key: u128) -> Result<SharedBytes> {
    if file.metadata().is_ok_and(|m| m.len() == 0) {
        return Err(Error::invalid("it is empty"));
    }
    let bytes = files::read_aligned(file).map_err(|e| Error::io("it cannot be read", &e))?;
    let header = parse(bytes.as_slice())?;
    if header.key != key {
        return Err(Error::invalid("it is the entry of another model under this name"));
    }
    if header.payload.end != bytes.len() {
        return Err(Error::invalid(format!("it should have {} bytes, it has {}", header.payload.end, bytes.len())));
    }
    let mut hash = Hash128::default();
    hash.bytes(&bytes.as_slice()[header.payload.clone()]);
    if hash.finish() != header.sum {
        return Err(Error::invalid("it is damaged: its checksum differs"));
    }
    bytes.part(header.payload).ok_or_else(|| Error::invalid("it is cut short"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> EntryInfo {
        EntryInfo { device: "TEMPLATE".into(), version: "1".into(), model: "é".repeat(500) }
    }
    fn entry() -> Vec<u8> {
        let mut out = io::Cursor::new(Vec::new());
        write(&mut out, 7, &info(), |to| to.write_all(b"payload").map_err(|e| Error::io("", &e))).unwrap();
        out.into_inner()
    }
    fn check(bytes: &[u8], key: u128) -> Result<Vec<u8>> {
        let path = std::env::temp_dir().join(format!("carafe-entry-{}-{key}-{}", std::process::id(), bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        let got = payload(&File::open(&path).unwrap(), key).map(|p| p.as_slice().to_vec());
        std::fs::remove_file(path).unwrap();
        got
    }

    #[test]
    fn the_payload_comes_back() {
        assert_eq!(check(&entry(), 7).unwrap(), b"payload");
    }

    #[test]
    fn every_cut_and_every_flip_is_refused() {
        let whole = entry();
        for n in 0..whole.len() {
            assert!(check(&whole[..n], 7).is_err(), "cut at {n}");
        }
        let texts = 52..whole.len() - 7;
        for i in (0..whole.len()).filter(|i| !texts.contains(i)) {
            let mut damaged = whole.clone();
            damaged[i] ^= 1;
            assert!(check(&damaged, 7).is_err(), "flip at {i}");
        }
        assert!(check(&[whole, vec![0]].concat(), 7).is_err());
    }

    #[test]
    fn the_entry_of_another_key_is_refused() {
        assert!(check(&entry(), 8).unwrap_err().to_string().contains("another model"));
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_no_header() {
        struct Full(io::Cursor<Vec<u8>>);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                match self.0.get_ref().len() + bytes.len() > 2000 {
                    true => Err(io::ErrorKind::StorageFull.into()),
                    false => self.0.write(bytes),
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Full {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let big = vec![1u8; 3 << 20];
        let mut out = Full(io::Cursor::new(vec![]));
        struct Lent<'a>(&'a mut Full);
        impl Write for Lent<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Lent<'_> {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let export = |to: &mut dyn Write| to.write_all(&big).map_err(|e| Error::io("cannot write", &e));
        let done = write(Lent(&mut out), 7, &info(), export);
        assert!(done.unwrap_err().to_string().contains("cannot write"));
        assert!(!out.0.get_ref().starts_with(MAGIC));
    }
}
