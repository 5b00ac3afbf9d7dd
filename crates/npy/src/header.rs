//! The header of an .npy file: a Python dictionary in text form with `descr`, `fortran_order` and `shape`.

use crate::NpyError;

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// As many axes as NumPy allows.
const MOST_AXES: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) big_endian: bool,
    pub(crate) kind: Kind,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
}

/// Class and size of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    /// Bytes of one element.
    Int(usize),
    Uint(usize),
    Float(usize),
    /// Characters of four bytes.
    Unicode(usize),
    /// Bytes.
    Bytes(usize),
}

impl Kind {
    /// Bytes of one element; `None` past `usize`.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Kind::Bool => Some(1),
            Kind::Int(n) | Kind::Uint(n) | Kind::Float(n) | Kind::Bytes(n) => Some(n),
            Kind::Unicode(n) => n.checked_mul(4),
        }
    }
}

/// Splits a file into its header and the bytes after it.
pub(crate) fn read(file: &[u8]) -> Result<(Header, &[u8]), NpyError> {
    if !file.starts_with(MAGIC) {
        return Err(NpyError::Signature { expected: "NumPy array", signature: "\\x93NUMPY" });
    }
    let (version, rest) = take(&file[MAGIC.len()..], 2, "the version")?;
    let (length, rest) = match version[0] {
        1 => take(rest, 2, "the header length")?,
        2 | 3 => take(rest, 4, "the header length")?,
        major => {
            let what = format!("format version {major}.{}", version[1]);
            return Err(NpyError::Unsupported { what, expected: "1.0, 2.0 or 3.0" });
        }
    };
    let length = length.iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
    let (text, data) = take(rest, length, "the header")?;
    // Only version 3 has anything but ASCII here, in names of fields, which are refused below.
    let text = std::str::from_utf8(text).map_err(|_| bad("it is not text"))?;
    Ok((dictionary(text)?, data))
}

/// The first `n` bytes and the rest.
pub(crate) fn take<'a>(bytes: &'a [u8], n: usize, what: &str) -> Result<(&'a [u8], &'a [u8]), NpyError> {
    bytes.split_at_checked(n).ok_or_else(|| NpyError::Truncated {
        what: what.to_string(),
        needed: n,
        found: bytes.len(),
    })
}

/// The bytes of a whole header of version 1, padded so that the data begins at a multiple of 64. `descr` is as NumPy
/// spells it.
pub(crate) fn write(descr: &str, shape: &[usize]) -> Result<Vec<u8>, NpyError> {
    if shape.len() > MOST_AXES {
        return Err(too_many_axes(shape.len()));
    }
    let mut axes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    if shape.len() > 1 {
        axes.truncate(axes.len() - 2);
    } else {
        axes.truncate(axes.trim_end().len());
    }
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
    let before = MAGIC.len() + 4;
    let padded = (before + text.len() + 1).next_multiple_of(64) - before;
    text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
    text.push('\n');
    // At most 64 axes of 20 digits: far below the 65535 that version 1 can tell.
    let length = text.len() as u16;
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

fn bad(reason: impl Into<String>) -> NpyError {
    NpyError::Header { reason: reason.into() }
}

fn too_many_axes(n: usize) -> NpyError {
    NpyError::Unsupported { what: format!("an array of {n} axes"), expected: "at most 64" }
}

fn dictionary(text: &str) -> Result<Header, NpyError> {
    let mut scan = Scan { rest: text };
    let (mut descr, mut order, mut shape) = (None, None, None);
    scan.expect('{')?;
    while !scan.sees('}') {
        let key = scan.quoted()?;
        scan.expect(':')?;
        match key {
            "descr" if scan.peek() == Some('[') => {
                let what = "a structured element type".to_string();
                return Err(NpyError::Unsupported { what, expected: "plain numbers, booleans or strings" });
            }
            "descr" => descr = Some(descriptor(scan.quoted()?)?),
            "fortran_order" => order = Some(scan.boolean()?),
            "shape" => shape = Some(scan.tuple()?),
            other => return Err(bad(format!("unexpected key `{}`", clip(other)))),
        }
        if !scan.sees(',') {
            scan.expect('}')?;
            break;
        }
    }
    let missing = |key: &str| bad(format!("key `{key}` is missing"));
    let (big_endian, kind) = descr.ok_or_else(|| missing("descr"))?;
    let fortran_order = order.ok_or_else(|| missing("fortran_order"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    Ok(Header { big_endian, kind, fortran_order, shape })
}

/// `<f4` and the like: byte order, class, size.
fn descriptor(text: &str) -> Result<(bool, Kind), NpyError> {
    let unsupported = || NpyError::Unsupported {
        what: format!("element type `{}`", clip(text)),
        expected: "b1, i1 to i8, u1 to u8, f2, f4, f8, U or S",
    };
    let (big_endian, rest) = match text.strip_prefix('>') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix(['<', '=', '|']).unwrap_or(text)),
    };
    let mut chars = rest.chars();
    let class = chars.next().ok_or_else(unsupported)?;
    let size: usize = chars.as_str().parse().map_err(|_| unsupported())?;
    let kind = match (class, size) {
        ('b', 1) => Kind::Bool,
        ('i', 1 | 2 | 4 | 8) => Kind::Int(size),
        ('u', 1 | 2 | 4 | 8) => Kind::Uint(size),
        ('f', 2 | 4 | 8) => Kind::Float(size),
        ('U', _) => Kind::Unicode(size),
        ('S', _) => Kind::Bytes(size),
        _ => return Err(unsupported()),
    };
    Ok((big_endian, kind))
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }
    fn sees(&mut self, c: char) -> bool {
        let there = self.peek() == Some(c);
        if there {
            self.rest = &self.rest[c.len_utf8()..];
        }
        there
    }
    fn expect(&mut self, c: char) -> Result<(), NpyError> {
        if self.sees(c) { Ok(()) } else { Err(self.expected(&format!("`{c}`"))) }
    }
    fn expected(&self, wanted: &str) -> NpyError {
        bad(format!("expected {wanted}, found `{}`", clip(self.rest)))
    }
    fn quoted(&mut self) -> Result<&'a str, NpyError> {
        let quote = self.peek().filter(|c| "'\"".contains(*c)).ok_or_else(|| self.expected("a quoted text"))?;
        let inner = &self.rest[1..];
        let end = inner.find(quote).ok_or_else(|| self.expected("a closing quote"))?;
        self.rest = &inner[end + 1..];
        Ok(&inner[..end])
    }
    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.expected("True or False"))
    }
    fn tuple(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.sees(')') {
            self.peek();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let number = self.rest[..end].parse().map_err(|_| self.expected("a dimension"))?;
            // Python 2 wrote long integers as `3L`.
            self.rest = self.rest[end..].strip_prefix('L').unwrap_or(&self.rest[end..]);
            shape.push(number);
            if !self.sees(',') {
                self.expect(')')?;
                break;
            }
        }
        if shape.len() > MOST_AXES { Err(too_many_axes(shape.len())) } else { Ok(shape) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_any_order_and_with_either_quote() {
        let h = dictionary("{\"shape\": (3, 4L), 'fortran_order': True, 'descr': '>i2'}  \n").unwrap();
        assert_eq!(h, Header { big_endian: true, kind: Kind::Int(2), fortran_order: true, shape: vec![3, 4] });
    }

    #[test]
    fn a_written_header_is_aligned_and_reads_back() {
        for shape in [vec![], vec![7], vec![2, 3], vec![usize::MAX; 64]] {
            let bytes = write("<f4", &shape).unwrap();
            assert_eq!(bytes.len() % 64, 0);
            let (header, rest) = read(&bytes).unwrap();
            assert_eq!((header.shape, rest.len()), (shape, 0));
        }
    }

    #[test]
    fn bad_headers_are_told_apart() {
        let fails = |text: &str, message: &str| {
            let found = dictionary(text).unwrap_err().to_string();
            assert!(found.contains(message), "{text}: {found}");
        };
        fails("", "expected `{`");
        fails("{'descr': '<f4', 'fortran_order': False}", "key `shape` is missing");
        fails("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", "expected True or False");
        fails("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "expected a dimension, found `-1");
        fails("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", "expected a dimension");
        fails("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured");
        fails("{'descr': '|O', 'fortran_order': False, 'shape': ()}", "element type `|O` is not supported");
        fails("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "element type `<c8`");
        fails("{'descr': 'é', 'fortran_order': False, 'shape': ()}", "element type `é`");
        fails("{'other': 1}", "unexpected key `other`");
        fails("{'descr", "expected a closing quote");
        fails(&format!("{{'shape': ({})}}", "1,".repeat(65)), "65 axes");
    }
}
