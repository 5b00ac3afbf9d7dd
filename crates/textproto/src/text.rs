//! The text form. Separators between fields and the colon in front of a message are optional, strings that follow each
//! other are one, and messages stand in braces or angle brackets.

use crate::MAX_DEPTH;
use crate::cursor::Cursor;
use crate::tree::{Field, Message, TextError, Value};

/// Reads a message in the text form.
pub fn parse_text(text: &str) -> Result<Message, TextError> {
    let mut c = Cursor::new(text);
    let message = fields(&mut c, None, 0)?;
    Ok(message)
}

fn fields(c: &mut Cursor<'_>, close: Option<char>, depth: usize) -> Result<Message, TextError> {
    let mut message = Message::default();
    loop {
        c.skip_blanks();
        match (c.peek(), close) {
            (None, None) => return Ok(message),
            (Some(found), Some(close)) if found == close => {
                c.bump();
                return Ok(message);
            }
            (None, Some(close)) => return Err(c.expected(&format!("`{close}`"))),
            _ => {}
        }
        let at = c.position();
        let name = field_name(c)?;
        c.skip_blanks();
        let colon = c.eat(':');
        c.skip_blanks();
        let value = match c.peek() {
            Some('{' | '<') => message_value(c, depth)?,
            Some('[') => list(c, depth)?,
            _ if colon => scalar(c)?,
            _ => return Err(c.expected(&format!("`:` or a message behind `{name}`"))),
        };
        message.fields.push(Field { name, at, value });
        c.skip_blanks();
        if !c.eat(',') {
            c.eat(';');
        }
    }
}

// A word, or `[extension]`, or `[type.url/of.Any]`; numbers are names of unknown fields.
fn field_name(c: &mut Cursor<'_>) -> Result<String, TextError> {
    if c.eat('[') {
        let at = c.position();
        let name = c.take_while(|c| c.is_ascii_alphanumeric() || "._-/ \t".contains(c)).trim();
        if name.is_empty() || !c.eat(']') {
            return Err(at.error("expected the name of an extension and `]`"));
        }
        return Ok(format!("[{name}]"));
    }
    let name = match c.word() {
        "" => c.take_while(|c| c.is_ascii_digit()),
        word => word,
    };
    if name.is_empty() { Err(c.expected("the name of a field")) } else { Ok(name.to_string()) }
}

fn message_value(c: &mut Cursor<'_>, depth: usize) -> Result<Value, TextError> {
    if depth >= MAX_DEPTH {
        return Err(c.error(format!("messages are nested deeper than {MAX_DEPTH}")));
    }
    let close = if c.bump() == Some('<') { '>' } else { '}' };
    Ok(Value::Message(fields(c, Some(close), depth + 1)?))
}

fn list(c: &mut Cursor<'_>, depth: usize) -> Result<Value, TextError> {
    c.bump();
    let mut items = vec![];
    c.skip_blanks();
    if c.eat(']') {
        return Ok(Value::List(items));
    }
    loop {
        c.skip_blanks();
        let at = c.position();
        let item = if matches!(c.peek(), Some('{' | '<')) { message_value(c, depth)? } else { scalar(c)? };
        items.push((at, item));
        c.skip_blanks();
        if c.eat(']') {
            return Ok(Value::List(items));
        }
        if !c.eat(',') {
            return Err(c.expected("`,` or `]`"));
        }
    }
}

fn scalar(c: &mut Cursor<'_>) -> Result<Value, TextError> {
    match c.peek() {
        Some('"' | '\'') => {
            let mut bytes = vec![];
            while let Some(quote @ ('"' | '\'')) = c.peek() {
                string(c, quote, &mut bytes)?;
                c.skip_blanks();
            }
            Ok(Value::Str(bytes))
        }
        Some('-') => {
            c.bump();
            c.skip_blanks();
            match c.peek() {
                Some('0'..='9' | '.') => c.number(true),
                _ => {
                    let at = c.position();
                    match Value::Word(c.word().to_string()).as_f64() {
                        Some(x) => Ok(Value::Float(-x)),
                        None => Err(at.error("expected a number behind `-`")),
                    }
                }
            }
        }
        Some('0'..='9' | '.') => c.number(false),
        _ => match c.word() {
            "" => Err(c.expected("a value")),
            word => Ok(Value::Word(word.to_string())),
        },
    }
}

fn string(c: &mut Cursor<'_>, quote: char, bytes: &mut Vec<u8>) -> Result<(), TextError> {
    let start = c.position();
    c.bump();
    loop {
        bytes.extend(c.take_while(|c| c != quote && c != '\\' && c != '\n').bytes());
        match c.peek() {
            Some('\\') => escape(c, bytes)?,
            Some(found) if found == quote => {
                c.bump();
                return Ok(());
            }
            _ => return Err(start.error("the string does not end on its line")),
        }
    }
}

fn escape(c: &mut Cursor<'_>, bytes: &mut Vec<u8>) -> Result<(), TextError> {
    let at = c.position();
    c.bump();
    let bad = || at.error("unknown escape in a string");
    let digits = |c: &mut Cursor<'_>, least: usize, most: usize, radix: u32| {
        let n = c.rest().bytes().take(most).take_while(|b| (*b as char).is_digit(radix)).count();
        let text = &c.rest()[..n];
        for _ in 0..n {
            c.bump();
        }
        if n < least { None } else { u32::from_str_radix(text, radix).ok() }
    };
    let byte = match c.peek().ok_or_else(bad)? {
        '0'..='7' => {
            let n = digits(c, 1, 3, 8).ok_or_else(bad)?;
            bytes.push(u8::try_from(n).map_err(|_| at.error("an octal escape above \\377"))?);
            return Ok(());
        }
        kind @ ('x' | 'X' | 'u' | 'U') => {
            c.bump();
            let n = match kind {
                'u' => digits(c, 4, 4, 16),
                'U' => digits(c, 8, 8, 16),
                _ => digits(c, 1, 2, 16),
            }
            .ok_or_else(bad)?;
            if matches!(kind, 'x' | 'X') {
                bytes.push(n as u8);
            } else {
                let letter = char::from_u32(n).ok_or_else(|| at.error("an escape that is no character"))?;
                bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            }
            return Ok(());
        }
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'v' => 11,
        '\\' => b'\\',
        '\'' => b'\'',
        '"' => b'"',
        '?' => b'?',
        _ => return Err(bad()),
    };
    c.bump();
    bytes.push(byte);
    Ok(())
}
