//! Tables: an archive holds objects by utterance, one behind the other; a list says where each utterance lies.

use crate::array::Array;
use crate::error::{ArkError, Result};
use crate::scan::Scanner;
use carafe_tensor::Tensor;

/// One utterance.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// Frames by features, or one vector.
    pub value: Tensor,
}

/// Every utterance of an archive, binary or text.
pub fn read_ark(bytes: &[u8]) -> Result<Vec<Entry>> {
    let mut all = vec![];
    let mut at = 0;
    while let Some((key, start)) = key(bytes, at)? {
        let of_key = |e: ArkError| e.of(&key);
        let mut s = Scanner::new(bytes, start);
        let array = object(&mut s).map_err(of_key)?;
        let value = array.tensor(bytes).map_err(of_key)?;
        at = s.at();
        all.push(Entry { key, value });
    }
    Ok(all)
}

// Kaldi ends a key with a space. Others keep a NUL behind it, or leave the space out.
fn key(bytes: &[u8], at: usize) -> Result<Option<(String, usize)>> {
    let rest = &bytes[at..];
    let space = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let rest = &rest[space..];
    if rest.is_empty() {
        return Ok(None);
    }
    let n = rest.iter().position(|b| b.is_ascii_whitespace() || *b == 0).unwrap_or(rest.len());
    let wrong = || Scanner::new(bytes, at + space).expected("the name of an utterance");
    let key = std::str::from_utf8(&rest[..n]).map_err(|_| wrong())?;
    if key.is_empty() || n == rest.len() {
        return Err(wrong());
    }
    let behind = at + space + n;
    // One space belongs to the key; the mark of a binary object begins with a NUL.
    Ok(Some((key.to_string(), if bytes[behind] == 0 { behind } else { behind + 1 })))
}

// A matrix, or a single number as a vector of one would be: tables of other objects have no use here.
fn object(s: &mut Scanner<'_>) -> Result<Array> {
    s.array()
}

/// Every utterance of a list, `key file` or `key file:offset` a line. Files are read by `open`, which gets what the list has.
pub fn read_scp(text: &str, open: &mut dyn FnMut(&str) -> std::result::Result<Vec<u8>, String>) -> Result<Vec<Entry>> {
    let mut all = vec![];
    let mut last: Option<(String, Vec<u8>)> = None;
    for (i, line) in text.lines().enumerate() {
        let wrong = |reason: String| ArkError::Line { line: i + 1, reason };
        if line.trim().is_empty() {
            continue;
        }
        let (key, place) =
            line.trim().split_once(char::is_whitespace).ok_or_else(|| wrong("expected a key and a file".into()))?;
        let place = place.trim();
        if place.ends_with('|') || place.ends_with(']') {
            return Err(ArkError::Unsupported(format!(
                "line {}: `{place}` is a command or a part, expected a file",
                i + 1
            )));
        }
        let (path, offset) = match place.rsplit_once(':') {
            Some((path, offset)) if !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_digit()) => {
                (path, offset.parse().map_err(|_| wrong(format!("offset {offset} is out of range")))?)
            }
            _ => (place, 0usize),
        };
        if last.as_ref().is_none_or(|(p, _)| p != path) {
            last = Some((path.to_string(), open(path).map_err(wrong)?));
        }
        let Some((_, bytes)) = &last else { continue };
        let of_key = |e: ArkError| e.of(key);
        let mut s = Scanner::new(bytes, offset);
        let value = object(&mut s).and_then(|a| a.tensor(bytes)).map_err(of_key)?;
        all.push(Entry { key: key.to_string(), value });
    }
    Ok(all)
}
