//! JSON into the same tree. Names of fields stay as written (`irVersion` or `ir_version`), and so do numbers in quotes and
//! base64: what they mean is known to the schema. A field that is `null` is left out.

use crate::MAX_DEPTH;
use crate::cursor::Cursor;
use crate::tree::{Field, Message, TextError, Value};

/// Reads a message in the JSON form.
pub fn parse_json(text: &str) -> Result<Message, TextError> {
    let mut c = Cursor::new(text);
    blanks(&mut c);
    if c.peek() != Some('{') {
        return Err(c.expected("`{`"));
    }
    let message = object(&mut c, 0)?;
    blanks(&mut c);
    if c.peek().is_some() { Err(c.expected("the end")) } else { Ok(message) }
}

fn blanks(c: &mut Cursor<'_>) {
    c.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
}

fn object(c: &mut Cursor<'_>, depth: usize) -> Result<Message, TextError> {
    if depth >= MAX_DEPTH {
        return Err(c.error(format!("messages are nested deeper than {MAX_DEPTH}")));
    }
    c.bump();
    let mut message = Message::default();
    blanks(c);
    if c.eat('}') {
        return Ok(message);
    }
    loop {
        blanks(c);
        let at = c.position();
        if c.peek() != Some('"') {
            return Err(c.expected("the name of a field in quotes"));
        }
        let name = String::from_utf8_lossy(&string(c)?).into_owned();
        blanks(c);
        if !c.eat(':') {
            return Err(c.expected("`:`"));
        }
        blanks(c);
        let value = value(c, depth)?;
        if value.as_word() != Some("null") {
            message.fields.push(Field { name, at, value });
        }
        blanks(c);
        if c.eat('}') {
            return Ok(message);
        }
        if !c.eat(',') {
            return Err(c.expected("`,` or `}`"));
        }
    }
}

fn value(c: &mut Cursor<'_>, depth: usize) -> Result<Value, TextError> {
    match c.peek() {
        Some('{') => Ok(Value::Message(object(c, depth + 1)?)),
        Some('"') => Ok(Value::Str(string(c)?)),
        Some('-') => {
            c.bump();
            if matches!(c.peek(), Some('0'..='9')) { c.number(true) } else { Err(c.expected("a number behind `-`")) }
        }
        Some('0'..='9') => c.number(false),
        Some('[') => {
            c.bump();
            let mut items = vec![];
            blanks(c);
            if c.eat(']') {
                return Ok(Value::List(items));
            }
            loop {
                blanks(c);
                let at = c.position();
                if c.peek() == Some('[') {
                    return Err(c.expected("a value that is no list"));
                }
                items.push((at, value(c, depth)?));
                blanks(c);
                if c.eat(']') {
                    return Ok(Value::List(items));
                }
                if !c.eat(',') {
                    return Err(c.expected("`,` or `]`"));
                }
            }
        }
        _ => {
            let at = c.position();
            match c.word() {
                word @ ("true" | "false" | "null") => Ok(Value::Word(word.to_string())),
                "" => Err(c.expected("a value")),
                word => Err(at.error(format!("expected a value, found `{word}`"))),
            }
        }
    }
}

fn string(c: &mut Cursor<'_>) -> Result<Vec<u8>, TextError> {
    let start = c.position();
    c.bump();
    let mut bytes = vec![];
    loop {
        bytes.extend(c.take_while(|c| c != '"' && c != '\\' && c != '\n').bytes());
        match c.bump() {
            Some('"') => return Ok(bytes),
            Some('\\') => escape(c, &mut bytes)?,
            _ => return Err(start.error("the string does not end on its line")),
        }
    }
}

fn escape(c: &mut Cursor<'_>, bytes: &mut Vec<u8>) -> Result<(), TextError> {
    let at = c.position();
    let byte = match c.bump() {
        Some('n') => b'\n',
        Some('r') => b'\r',
        Some('t') => b'\t',
        Some('b') => 8,
        Some('f') => 12,
        Some(plain @ ('"' | '\\' | '/')) => plain as u8,
        Some('u') => {
            let bad = || at.error("an escape that is no character");
            let mut n = unit(c).ok_or_else(bad)?;
            if (0xd800..0xdc00).contains(&n) {
                // Characters above 0xffff come as two halves.
                let low = (c.eat('\\') && c.eat('u')).then(|| unit(c)).flatten();
                let low = low.filter(|l| (0xdc00..0xe000).contains(l)).ok_or_else(bad)?;
                n = 0x10000 + ((n - 0xd800) << 10) + (low - 0xdc00);
            }
            let letter = char::from_u32(n).ok_or_else(bad)?;
            bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            return Ok(());
        }
        _ => return Err(at.error("unknown escape in a string")),
    };
    bytes.push(byte);
    Ok(())
}

fn unit(c: &mut Cursor<'_>) -> Option<u32> {
    (0..4).try_fold(0, |n, _| Some(n * 16 + c.bump()?.to_digit(16)?))
}
