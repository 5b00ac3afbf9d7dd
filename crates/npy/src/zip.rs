//! As much of the zip format as archives of arrays need: stored and deflated members, 64-bit sizes when reading. Members
//! are found through the central directory, since the sizes in front of a member may be missing.

use crate::NpyError;
use crate::crc32::crc32;
use carafe_tensor::memory::ensure_memory;
use std::borrow::Cow;

const LOCAL: u32 = 0x0403_4B50;
const CENTRAL: u32 = 0x0201_4B50;
const END: u32 = 0x0605_4B50;
const END_64: u32 = 0x0606_4B50;
const LOCATOR_64: u32 = 0x0706_4B50;
const END_SIZE: usize = 22;
const CENTRAL_SIZE: usize = 46;
const LOCAL_SIZE: usize = 30;
/// A deflated byte cannot stand for more than this many.
const BEST_RATIO: u64 = 1032;
/// Midnight of the first of January 1980, the earliest date there is.
const DOS_DATE: u16 = 1 << 5 | 1;
const UTF8_NAME: u16 = 1 << 11;

/// A member as the central directory describes it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Bytes of the contents, as the directory says; checked when they are read.
    pub(crate) size: u64,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    offset: u64,
}

fn bad(reason: impl Into<String>) -> NpyError {
    NpyError::Archive { reason: reason.into() }
}

fn slice<'a>(file: &'a [u8], at: u64, n: usize, what: &str) -> Result<&'a [u8], NpyError> {
    let start = usize::try_from(at).ok().filter(|s| *s <= file.len());
    let found = start.map_or(0, |s| file.len() - s);
    start.and_then(|s| file.get(s..s.checked_add(n)?)).ok_or_else(|| NpyError::Truncated {
        what: what.to_string(),
        needed: n,
        found,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// All members, in the order of the central directory.
pub(crate) fn members(file: &[u8]) -> Result<Vec<Member>, NpyError> {
    let (count, mut at) = directory(file)?;
    // Each entry takes bytes, so a count beyond the file only ends in an error.
    let mut found = Vec::new();
    let mut packed = 0u64;
    for _ in 0..count {
        let entry = slice(file, at, CENTRAL_SIZE, "an entry of the directory")?;
        if u32_at(entry, 0) != CENTRAL {
            return Err(bad("an entry of the directory has no signature"));
        }
        let lengths = [28, 30, 32].map(|i| usize::from(u16_at(entry, i)));
        let tail = slice(file, at + CENTRAL_SIZE as u64, lengths.iter().sum(), "an entry of the directory")?;
        let name = std::str::from_utf8(&tail[..lengths[0]]).map_err(|_| bad("the name of a member is not UTF-8"))?;
        let mut member = Member {
            name: name.to_string(),
            flags: u16_at(entry, 8),
            method: u16_at(entry, 10),
            crc: u32_at(entry, 16),
            packed: u64::from(u32_at(entry, 20)),
            size: u64::from(u32_at(entry, 24)),
            offset: u64::from(u32_at(entry, 42)),
        };
        member.widen(&tail[lengths[0]..lengths[0] + lengths[1]])?;
        packed = packed.saturating_add(member.packed);
        if packed > file.len() as u64 {
            // Also keeps many members from sharing the same bytes, which would multiply them.
            return Err(bad("its members are larger than the file"));
        }
        at += (CENTRAL_SIZE + tail.len()) as u64;
        found.push(member);
    }
    Ok(found)
}

/// Number of entries and offset of the central directory.
fn directory(file: &[u8]) -> Result<(u64, u64), NpyError> {
    if !file.starts_with(b"PK") {
        return Err(NpyError::Signature { expected: "zip", signature: "PK" });
    }
    // A comment of up to 65535 bytes may follow the end record.
    let last = file.len().checked_sub(END_SIZE).ok_or_else(|| bad("it has no end record"))?;
    let end = (last.saturating_sub(usize::from(u16::MAX))..=last)
        .rev()
        .find(|&at| u32_at(file, at) == END && at + END_SIZE + usize::from(u16_at(file, at + 20)) <= file.len())
        .ok_or_else(|| bad("it has no end record; it may be cut short"))?;
    let (count, offset) = (u64::from(u16_at(file, end + 10)), u64::from(u32_at(file, end + 16)));
    if count != u64::from(u16::MAX) && offset != u64::from(u32::MAX) {
        return Ok((count, offset));
    }
    // The real numbers are in a record that the locator right before points to, if there is one.
    let Some(locator) = end.checked_sub(20).filter(|&at| u32_at(file, at) == LOCATOR_64) else {
        return Ok((count, offset));
    };
    let record = slice(file, u64_at(file, locator + 8), 56, "the end record")?;
    if u32_at(record, 0) != END_64 {
        return Err(bad("its 64-bit end record has no signature"));
    }
    Ok((u64_at(record, 32), u64_at(record, 48)))
}

impl Member {
    /// Takes 64-bit numbers from the extra field, where the short ones say so.
    fn widen(&mut self, mut extra: &[u8]) -> Result<(), NpyError> {
        while extra.len() >= 4 {
            let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
            let Some(mut body) = extra.get(4..4 + len) else { return Ok(()) };
            extra = &extra[4 + len..];
            if id != 1 {
                continue;
            }
            for field in [&mut self.size, &mut self.packed, &mut self.offset] {
                if *field == u64::from(u32::MAX) {
                    let (number, rest) = body.split_at_checked(8).ok_or_else(|| bad("a 64-bit size is cut short"))?;
                    *field = u64_at(number, 0);
                    body = rest;
                }
            }
        }
        Ok(())
    }

    /// The contents; the checksum is checked.
    pub(crate) fn contents<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, NpyError> {
        if self.flags & 1 != 0 {
            return Err(NpyError::Unsupported { what: "an encrypted member".into(), expected: "plain members" });
        }
        let local = slice(file, self.offset, LOCAL_SIZE, "a member")?;
        if u32_at(local, 0) != LOCAL {
            return Err(bad("a member has no signature"));
        }
        let skipped = LOCAL_SIZE + usize::from(u16_at(local, 26)) + usize::from(u16_at(local, 28));
        let length = usize::try_from(self.packed).unwrap_or(usize::MAX);
        let data = slice(file, self.offset + skipped as u64, length, "a member")?;
        let contents = match self.method {
            0 => Cow::Borrowed(data),
            8 => Cow::Owned(self.inflate(data)?),
            other => {
                let what = format!("compression method {other}");
                return Err(NpyError::Unsupported { what, expected: "stored or deflated members" });
            }
        };
        if contents.len() as u64 != self.size {
            return Err(bad(format!("a member should hold {} bytes, found {}", self.size, contents.len())));
        }
        if crc32(&contents) != self.crc {
            return Err(bad("the checksum of a member is wrong"));
        }
        Ok(contents)
    }

    fn inflate(&self, data: &[u8]) -> Result<Vec<u8>, NpyError> {
        let most = (data.len() as u64).saturating_mul(BEST_RATIO);
        let size = usize::try_from(self.size).ok().filter(|_| self.size <= most);
        let size = size.ok_or_else(|| bad(format!("a member cannot grow to {} bytes", self.size)))?;
        // The output grows as it comes, so a false size costs nothing; twice the size may be there while it grows.
        ensure_memory(size.saturating_mul(2))?;
        miniz_oxide::inflate::decompress_to_vec_with_limit(data, size)
            .map_err(|e| bad(format!("a deflated member is damaged: {:?}", e.status)))
    }
}

/// An archive of stored members.
pub(crate) fn write(members: &[(String, Vec<u8>)]) -> Result<Vec<u8>, NpyError> {
    let limit = u64::from(u32::MAX) - 1;
    let bytes: u128 = members.iter().map(|(n, d)| (LOCAL_SIZE + CENTRAL_SIZE + 2 * n.len() + d.len()) as u128).sum();
    if bytes > u128::from(limit) {
        return Err(NpyError::TooLarge { what: "the archive".into(), bytes, limit });
    }
    if members.len() >= usize::from(u16::MAX) || members.iter().any(|(n, _)| n.len() > usize::from(u16::MAX)) {
        return Err(bad("at most 65534 members with names of at most 65535 bytes can be written"));
    }
    let mut out = Vec::with_capacity(bytes as usize + END_SIZE);
    let mut central = Vec::new();
    for (name, data) in members {
        let offset = out.len() as u32;
        let common = common_fields(name, data);
        out.extend_from_slice(&LOCAL.to_le_bytes());
        out.extend_from_slice(&common);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(data);
        central.extend_from_slice(&CENTRAL.to_le_bytes());
        central.extend_from_slice(&20u16.to_le_bytes());
        central.extend_from_slice(&common);
        // Comment, disk, attributes inside and outside.
        central.extend_from_slice(&[0; 10]);
        central.extend_from_slice(&offset.to_le_bytes());
        central.extend_from_slice(name.as_bytes());
    }
    let (at, count) = (out.len() as u32, (members.len() as u16).to_le_bytes());
    out.extend_from_slice(&central);
    out.extend_from_slice(&END.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[count, count].concat());
    out.extend_from_slice(&(central.len() as u32).to_le_bytes());
    out.extend_from_slice(&at.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    Ok(out)
}

/// What both headers of a stored member hold, from the version needed to the length of the extra field.
fn common_fields(name: &str, data: &[u8]) -> Vec<u8> {
    let flags = if name.is_ascii() { 0 } else { UTF8_NAME };
    let (crc, size) = (crc32(data), data.len() as u32);
    let mut out = Vec::with_capacity(26);
    out.extend([20, flags, 0, 0, DOS_DATE].iter().flat_map(|n: &u16| n.to_le_bytes()));
    out.extend([crc, size, size].iter().flat_map(|n| n.to_le_bytes()));
    out.extend([name.len() as u16, 0].iter().flat_map(|n| n.to_le_bytes()));
    out
}
