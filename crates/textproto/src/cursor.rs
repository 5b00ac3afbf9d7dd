//! A place in a text that moves on, shared by the languages read here: white space and comments, words, numbers. It keeps
//! count of lines, so that every message can name its place.

use crate::tree::{Position, TextError, Value};

#[derive(Clone, Debug)]
pub struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// Where lines and columns were last counted, so that asking often stays cheap.
    line: u32,
    line_start: usize,
    counted: usize,
}

impl<'t> Cursor<'t> {
    /// A byte order mark at the start is skipped.
    pub fn new(text: &'t str) -> Cursor<'t> {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Cursor { text, at, line: 1, line_start: at, counted: at }
    }
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
    pub fn offset(&self) -> usize {
        self.at
    }
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    pub fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }
    /// Takes one character if it is this.
    pub fn eat(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
    /// Skips white space, and `#` comments up to the end of their line.
    pub fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.eat('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
    pub fn position(&mut self) -> Position {
        let bytes = self.text.as_bytes();
        for i in self.counted..self.at {
            if bytes[i] == b'\n' {
                self.line = self.line.saturating_add(1);
                self.line_start = i + 1;
            }
        }
        self.counted = self.at;
        // Long lines are long lists of numbers; their columns are counted in bytes to stay linear.
        let line = &self.text[self.line_start..self.at];
        let before = if line.len() > 4096 { line.len() } else { line.chars().count() };
        Position { line: self.line, column: u32::try_from(before + 1).unwrap_or(u32::MAX) }
    }
    pub fn error(&mut self, message: impl Into<String>) -> TextError {
        self.position().error(message)
    }
    /// `expected X, found Y`.
    pub fn expected(&mut self, what: &str) -> TextError {
        let found = match self.peek() {
            None => "the end".to_string(),
            Some(c) if is_word(c) => {
                let word: String = self.rest().chars().take_while(|c| is_word(*c)).take(40).collect();
                format!("`{word}`")
            }
            Some(c) if c.is_control() => format!("{c:?}"),
            Some(c) => format!("`{c}`"),
        };
        self.error(format!("expected {what}, found {found}"))
    }
    /// A word of letters, digits and underscores that starts with no digit; empty when there is none.
    pub fn word(&mut self) -> &'t str {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.take_while(is_word),
            _ => "",
        }
    }
    /// A number without sign: decimal, octal (`017`), hexadecimal (`0x1f`) or with a fraction, exponent or `f` behind it.
    pub fn number(&mut self, negative: bool) -> Result<Value, TextError> {
        let start = self.at;
        let at = self.position();
        let digits = self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        // The sign of an exponent.
        let exponent = digits.ends_with(['e', 'E']) && !digits.starts_with("0x") && !digits.starts_with("0X");
        if exponent && (self.eat('+') || self.eat('-')) {
            self.take_while(|c| c.is_ascii_alphanumeric());
        }
        let text = &self.text[start..self.at];
        let bad = || at.error(format!("`{}` is not a number", text.chars().take(40).collect::<String>()));
        let whole = if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            Some(u128::from_str_radix(hex, 16).map_err(|_| bad())?)
        } else if text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) {
            Some(u128::from_str_radix(text, 8).map_err(|_| bad())?)
        } else if text.bytes().all(|b| b.is_ascii_digit()) {
            text.parse::<u128>().ok()
        } else {
            None
        };
        if let Some(n) = whole
            && let Ok(n) = i128::try_from(n)
            && n <= i128::from(u64::MAX)
        {
            return Ok(Value::Int(if negative { -n } else { n }));
        }
        let plain = text.strip_suffix(['f', 'F']).unwrap_or(text);
        // `parse` would take `inf` and the like, which are words here.
        if !plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Err(bad());
        }
        let x: f64 = plain.parse().map_err(|_| bad())?;
        Ok(Value::Float(if negative { -x } else { x }))
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
