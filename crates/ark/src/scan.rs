//! Tokens and numbers, which stand one after the other in both forms. In binary a number has a byte in front that says its
//! size, a bool is one letter, and a token ends with one space.

use crate::array::Array;
use crate::error::{ArkError, Result};

/// Longer words are no tokens of Kaldi.
const MAX_TOKEN: usize = 4096;

/// Whether an object is in binary: two bytes say so.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0B")
}

/// Reads one thing after the other.
#[derive(Clone, Debug)]
pub struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    binary: bool,
}

impl<'b> Scanner<'b> {
    /// Of an object that begins at this byte; the mark of a binary one is read.
    pub fn new(bytes: &'b [u8], at: usize) -> Scanner<'b> {
        let binary = bytes.get(at..).is_some_and(is_binary);
        Scanner { bytes, at: at.min(bytes.len()) + if binary { 2 } else { 0 }, binary }
    }
    /// Whether the object is in binary.
    pub fn is_binary(&self) -> bool {
        self.binary
    }
    /// The byte that is read next.
    pub fn at(&self) -> usize {
        self.at
    }
    /// All bytes.
    pub fn bytes(&self) -> &'b [u8] {
        self.bytes
    }
    /// What has not been read.
    pub fn rest(&self) -> &'b [u8] {
        &self.bytes[self.at..]
    }
    /// An error that says what is there.
    pub fn expected(&self, expected: impl Into<String>) -> ArkError {
        let found = self.rest().iter().take(24).map(|b| match b {
            b' '..=b'~' => char::from(*b).to_string(),
            b'\n' => "\\n".to_string(),
            _ => format!("\\x{b:02x}"),
        });
        let found: String = found.collect();
        let found = if found.is_empty() { "the end of the file".to_string() } else { format!("`{found}`") };
        ArkError::Expected { expected: expected.into(), at: self.at, found }
    }

    /// Passes over spaces and line ends.
    pub fn skip_space(&mut self) {
        let n = self.rest().iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += n;
    }
    /// Passes over spaces and line ends of text; in binary every byte counts.
    pub fn skip_text_space(&mut self) {
        if !self.binary {
            self.skip_space();
        }
    }
    /// The next bytes.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'b [u8]> {
        let found = self.rest().get(..n).ok_or(ArkError::Truncated {
            what,
            at: self.at,
            needed: n as u64,
            found: self.rest().len(),
        })?;
        self.at += n;
        Ok(found)
    }
    /// The line up to its end, which is passed over.
    pub fn line(&mut self) -> Option<&'b [u8]> {
        if self.rest().is_empty() {
            return None;
        }
        let n = self.rest().iter().position(|b| *b == b'\n');
        let line = &self.rest()[..n.unwrap_or(self.rest().len())];
        self.at += line.len() + usize::from(n.is_some());
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
    fn word(&self) -> Option<(usize, &'b str)> {
        let space = self.rest().iter().take_while(|b| b.is_ascii_whitespace()).count();
        let rest = &self.rest()[space..];
        let n = rest.iter().take(MAX_TOKEN + 1).take_while(|b| !b.is_ascii_whitespace()).count();
        if n == 0 || n > MAX_TOKEN {
            return None;
        }
        std::str::from_utf8(&rest[..n]).ok().map(|word| (space, word))
    }
    /// The next token, without reading it.
    pub fn peek(&self) -> Option<&'b str> {
        self.word().map(|(_, word)| word)
    }
    /// The next token and the space behind it.
    pub fn token(&mut self) -> Result<&'b str> {
        let (space, word) = self.word().ok_or_else(|| self.expected("a token"))?;
        self.at += space + word.len();
        if self.rest().first().is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        Ok(word)
    }
    /// This token.
    pub fn expect(&mut self, token: &str) -> Result<()> {
        match self.peek() {
            Some(found) if found == token => self.token().map(|_| ()),
            _ => Err(self.expected(format!("`{token}`"))),
        }
    }
    /// A word of text that must be a number of some kind.
    fn number<T>(&mut self, what: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        let wrong = self.expected(what);
        let word = self.token()?;
        parse(word).ok_or(wrong)
    }

    /// A whole number.
    pub fn int(&mut self) -> Result<i64> {
        if !self.binary {
            return self.number("an integer", |w| w.parse().ok());
        }
        let wrong = self.expected("an integer");
        let size = self.take(1, "an integer")?[0] as i8;
        let bytes = match size.unsigned_abs() {
            n @ (1 | 2 | 4 | 8) => self.take(usize::from(n), "an integer")?,
            _ => return Err(wrong),
        };
        let negative = size > 0 && bytes.last().is_some_and(|b| b & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        Ok(i64::from_le_bytes(std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(fill))))
    }
    /// A number.
    pub fn float(&mut self) -> Result<f64> {
        if !self.binary {
            return self.number("a number", parse_float);
        }
        let wrong = self.expected("a number");
        match self.take(1, "a number")?[0] {
            4 => Ok(f32_at(self.take(4, "a number")?).into()),
            8 => Ok(f64_at(self.take(8, "a number")?)),
            _ => Err(wrong),
        }
    }
    /// True or false.
    pub fn bool(&mut self) -> Result<bool> {
        let wrong = self.expected("T or F");
        let letter = if self.binary { self.take(1, "T or F")?[0] } else { self.token()?.as_bytes()[0] };
        match letter {
            b'T' => Ok(true),
            b'F' => Ok(false),
            _ => Err(wrong),
        }
    }
    /// Whole numbers.
    pub fn ints(&mut self) -> Result<Vec<i64>> {
        if !self.binary {
            return Ok(self.list("an integer", |w| Some(vec![w.parse().ok()?]))?.concat());
        }
        self.raw_ints(1)
    }
    /// Pairs of whole numbers, one behind the other.
    pub fn pairs(&mut self) -> Result<Vec<i64>> {
        let pair = |w: &str| w.split_once(',').and_then(|(a, b)| Some(vec![a.parse().ok()?, b.parse().ok()?]));
        if !self.binary { Ok(self.list("a pair of integers", pair)?.concat()) } else { self.raw_ints(2) }
    }
    // In text: `[ 1 2 3 ]`.
    fn list<T>(&mut self, what: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
        if self.peek() == Some("[]") {
            self.token()?;
            return Ok(vec![]);
        }
        self.expect("[")?;
        let mut all = vec![];
        while self.peek() != Some("]") {
            all.push(self.number(what, &parse)?);
        }
        self.token()?;
        Ok(all)
    }
    fn raw_ints(&mut self, each: u64) -> Result<Vec<i64>> {
        let (at, wrong) = (self.at, self.expected("a list of integers"));
        let size = self.take(1, "a list of integers")?[0] as i8;
        let count = i32_at(self.take(4, "a list of integers")?);
        if !matches!(size.unsigned_abs(), 1 | 2 | 4 | 8) || count < 0 {
            return Err(wrong);
        }
        let size = usize::from(size.unsigned_abs());
        let needed = count as u64 * each * size as u64;
        let found = self.rest().len();
        if needed > found as u64 {
            return Err(ArkError::Truncated { what: "a list of integers", at, needed, found });
        }
        let bytes = self.take(needed as usize, "a list of integers")?;
        let one = |b: &[u8]| {
            let fill = if b[size - 1] & 0x80 != 0 { 0xff } else { 0 };
            i64::from_le_bytes(std::array::from_fn(|i| b.get(i).copied().unwrap_or(fill)))
        };
        Ok(bytes.chunks_exact(size).map(one).collect())
    }
    /// A vector or a matrix.
    pub fn array(&mut self) -> Result<Array> {
        Array::scan(self)
    }
}

pub(crate) fn i32_at(b: &[u8]) -> i32 {
    i32::from_le_bytes([b[0], b[1], b[2], b[3]])
}
pub(crate) fn f32_at(b: &[u8]) -> f32 {
    f32::from_le_bytes([b[0], b[1], b[2], b[3]])
}
pub(crate) fn f64_at(b: &[u8]) -> f64 {
    f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

/// A number as Kaldi writes it, with its words for what is none.
pub(crate) fn parse_float(word: &str) -> Option<f64> {
    // `1.#INF` and `-1.#IND` come from Windows.
    match word.to_ascii_lowercase().as_str() {
        "1.#inf" => Some(f64::INFINITY),
        "-1.#inf" => Some(f64::NEG_INFINITY),
        "1.#qnan" | "-1.#ind" => Some(f64::NAN),
        w => w.parse().ok(),
    }
}
