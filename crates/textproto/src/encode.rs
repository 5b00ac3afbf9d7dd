//! The tree into the bytes of the binary form, by a schema. A name the schema does not have is an error with its place:
//! in a text it is a slip of the pen more often than a field from the future.

use crate::schema::{Kind, Schema};
use crate::tree::{Message, Position, TextError, Value};

/// Where a tree came from: JSON has bytes as base64, and large or special numbers in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

/// The message as bytes.
pub fn encode(message: &Message, schema: &Schema, form: Form) -> Result<Vec<u8>, TextError> {
    let mut out = vec![];
    put_message(message, schema, form, &mut out)?;
    Ok(out)
}

fn put_message(message: &Message, schema: &Schema, form: Form, out: &mut Vec<u8>) -> Result<(), TextError> {
    for field in &message.fields {
        let Some(info) = schema.field(&field.name) else {
            // An extension, or a type of `Any`, that the schema does not know is what an unknown field of bytes is.
            if field.name.starts_with('[') {
                continue;
            }
            return Err(field.at.error(format!("{} has no field `{}`", schema.name, field.name)));
        };
        let mut put = |at: Position, value: &Value| {
            put_value(info.number, info.kind, value, form, out).map_err(|e| {
                e.unwrap_or_else(|what| at.error(format!("`{}` must be {what}, found {}", info.name, value.describe())))
            })
        };
        match &field.value {
            Value::List(items) => items.iter().try_for_each(|(at, v)| put(*at, v))?,
            v => put(field.at, v)?,
        }
    }
    Ok(())
}

/// Either an error of its own, or what was expected instead.
enum Refused {
    Inside(TextError),
    Expected(String),
}

impl Refused {
    fn unwrap_or_else(self, make: impl FnOnce(String) -> TextError) -> TextError {
        match self {
            Refused::Inside(e) => e,
            Refused::Expected(what) => make(what),
        }
    }
}

fn put_value(number: u32, kind: Kind, value: &Value, form: Form, out: &mut Vec<u8>) -> Result<(), Refused> {
    let expected = |what: &str| Refused::Expected(what.to_string());
    let key = |wire: u32, out: &mut Vec<u8>| put_varint(u64::from(number << 3 | wire), out);
    match kind {
        Kind::Skip => {}
        Kind::Int => {
            let n = whole(value, form).ok_or_else(|| expected("a whole number of 64 bits"))?;
            key(0, out);
            put_varint(n, out);
        }
        Kind::Bool => {
            let b = value.as_bool().ok_or_else(|| expected("true or false"))?;
            key(0, out);
            put_varint(u64::from(b), out);
        }
        Kind::Enum(words) => {
            let named = value.as_word().or(value.as_str().filter(|_| form == Form::Json));
            let n = match named {
                Some(word) => words.iter().find(|(w, _)| *w == word).map(|(_, n)| i64::from(*n)),
                None => value.as_i64(),
            };
            let n = n.ok_or_else(|| {
                let known: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
                Refused::Expected(format!("one of {}", known.join(", ")))
            })?;
            key(0, out);
            put_varint(n as u64, out);
        }
        Kind::Float => {
            let x = real(value, form).ok_or_else(|| expected("a number"))?;
            key(5, out);
            out.extend((x as f32).to_le_bytes());
        }
        Kind::Double => {
            let x = real(value, form).ok_or_else(|| expected("a number"))?;
            key(1, out);
            out.extend(x.to_le_bytes());
        }
        Kind::Str | Kind::Bytes => {
            let Value::Str(text) = value else { return Err(expected("a string")) };
            let decoded;
            let bytes = match kind {
                Kind::Bytes if form == Form::Json => {
                    decoded = base64(text).ok_or_else(|| expected("base64"))?;
                    &decoded
                }
                _ => text,
            };
            key(2, out);
            put_varint(bytes.len() as u64, out);
            out.extend(bytes);
        }
        Kind::Message(schema) => {
            let Value::Message(message) = value else { return Err(expected("a message")) };
            let inner = encode(message, schema, form).map_err(Refused::Inside)?;
            key(2, out);
            put_varint(inner.len() as u64, out);
            out.extend(inner);
        }
    }
    Ok(())
}

// Two's complement, as `int64` and `uint64` are stored.
fn whole(value: &Value, form: Form) -> Option<u64> {
    let n = match value {
        Value::Int(n) => *n,
        Value::Float(x) if form == Form::Json && x.fract() == 0.0 && x.abs() < 9.0e18 => *x as i128,
        Value::Str(_) if form == Form::Json => value.as_str()?.parse::<i128>().ok()?,
        _ => return None,
    };
    if n < i128::from(i64::MIN) || n > i128::from(u64::MAX) { None } else { Some(n as u64) }
}

fn real(value: &Value, form: Form) -> Option<f64> {
    match value {
        Value::Str(_) if form == Form::Json => match value.as_str()? {
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            "NaN" => Some(f64::NAN),
            text => text.parse().ok(),
        },
        v => v.as_f64(),
    }
}

// Both alphabets; padding may be left out.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|b| *b != b'=').map_or(0, |i| i + 1);
    let mut out = Vec::with_capacity(end / 4 * 3 + 3);
    for group in text[..end].chunks(4) {
        let mut bits = 0u32;
        for b in group {
            let six = match b {
                b'A'..=b'Z' => b - b'A',
                b'a'..=b'z' => b - b'a' + 26,
                b'0'..=b'9' => b - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(six);
        }
        let n = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        bits <<= 6 * (4 - group.len()) as u32;
        out.extend(&bits.to_be_bytes()[1..=n]);
    }
    Some(out)
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
