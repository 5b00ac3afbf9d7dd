//! Whether a file is a net of Caffe, detected from its first bytes. Other formats are protobuf as well, in text and in bytes: what
//! counts is that every field fits a `NetParameter` and that a layer or an input is among them.

use crate::wire::{Content, Fields};
use carafe_textproto::Cursor;

/// Fields of a net at the outermost level of a text.
const NET_FIELDS: &[&str] = &[
    "name",
    "layer",
    "layers",
    "input",
    "input_dim",
    "input_shape",
    "force_backward",
    "state",
    "debug_info",
    "profile_info",
    "profile_iter",
    "profile_warmup",
];

/// Whether these first bytes of a file are those of a net of Caffe, be it text or binary.
pub(crate) fn is_caffe(head: &[u8]) -> bool {
    is_text(head) || is_binary(head)
}

/// Whether they are those of a net written as text.
pub(crate) fn is_text(head: &[u8]) -> bool {
    // The head may end within a letter, and what is no UTF-8 further on is told by whoever reads the whole.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or(""),
    };
    let mut c = Cursor::new(text);
    loop {
        c.skip_blanks();
        let word = c.word();
        if !NET_FIELDS.contains(&word) {
            return false;
        }
        c.skip_blanks();
        let colon = c.eat(':');
        c.skip_blanks();
        match (word, c.peek()) {
            ("layer" | "layers" | "input_shape", Some('{' | '<')) => return true,
            ("input", Some('"' | '\'' | '[')) if colon => return true,
            ("input_dim", Some('0'..='9' | '-' | '[')) if colon => return true,
            ("state", Some('{' | '<')) => {
                c.take_while(|c| c != '}' && c != '>');
                c.bump();
            }
            ("name", Some(quote @ ('"' | '\''))) if colon => {
                while c.peek() == Some(quote) {
                    c.bump();
                    c.take_while(|c| c != quote);
                    c.bump();
                    c.skip_blanks();
                }
            }
            (_, Some('a'..='z' | 'A'..='Z' | '0'..='9')) if colon => {
                c.take_while(|c| c.is_ascii_alphanumeric());
            }
            _ => return false,
        }
        c.skip_blanks();
        if !c.eat(',') {
            c.eat(';');
        }
    }
}

fn is_binary(head: &[u8]) -> bool {
    let mut at = 0;
    while at < head.len() {
        let Some((key, used)) = varint(&head[at..]) else { return false };
        at += used;
        let (number, kind) = (key >> 3, key & 7);
        match (number, kind) {
            (4 | 5 | 7 | 9 | 10 | 11, 0) => {
                let Some((_, used)) = varint(&head[at..]) else { return false };
                at += used;
            }
            (1 | 2 | 3 | 4 | 6 | 8 | 100, 2) => {
                let Some((len, used)) = varint(&head[at..]) else { return false };
                at += used;
                let Some(end) = usize::try_from(len).ok().and_then(|n| at.checked_add(n)) else { return false };
                let content = &head[at..end.min(head.len())];
                match number {
                    1 | 3 if !is_name(content) => return false,
                    100 => return is_layer(content, (1, 2), &[3, 4]),
                    2 => return is_layer(content, (4, 5), &[2, 3]),
                    _ => {}
                }
                at = end;
            }
            _ => return false,
        }
    }
    false
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7f) << (7 * i as u32).min(63);
        if b & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

// Text without control characters.
fn is_name(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|t| !t.chars().any(char::is_control))
}

// A layer has a name or a type, and its bottoms and tops are names. A layer larger than the head is cut off, which is no fault.
fn is_layer(bytes: &[u8], (name, ty): (u32, u32), blobs: &[u32]) -> bool {
    let mut found = false;
    for field in Fields::new(bytes, 0) {
        let Ok(field) = field else { return found };
        match field.content {
            Content::Bytes(text, _) if field.number == name => found |= is_name(text),
            Content::Bytes(text, _) if field.number == ty && ty == 2 => {
                if !is_name(text) || text.is_empty() {
                    return false;
                }
                found = true;
            }
            Content::Varint(n) if field.number == ty && ty == 5 => {
                if n > 39 {
                    return false;
                }
                found = true;
            }
            Content::Bytes(text, _) if blobs.contains(&field.number) && is_name(text) => {}
            _ if field.number == name || field.number == ty || blobs.contains(&field.number) => return false,
            _ => {}
        }
    }
    found
}
