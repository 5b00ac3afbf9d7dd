//! The words of the language: names that may stand in quotes, numbers without octal, strings in which a backslash only
//! takes the meaning from the next character.

use super::Result;
use carafe_textproto::{Cursor, Position, TextError};

/// Graphs and types inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 32;

pub(super) struct Parser<'t> {
    c: Cursor<'t>,
    depth: usize,
}

/// A value without structure.
pub(super) enum Literal {
    Int(i128),
    Float(f64),
    Str(String),
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Parser<'t> {
        Parser { c: Cursor::new(text), depth: 0 }
    }
    pub(super) fn peek(&mut self) -> Option<char> {
        self.c.skip_blanks();
        self.c.peek()
    }
    pub(super) fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }
    pub(super) fn position(&mut self) -> Position {
        self.c.skip_blanks();
        self.c.position()
    }
    pub(super) fn expected(&mut self, what: &str) -> TextError {
        self.c.skip_blanks();
        self.c.expected(what)
    }
    /// Takes the token if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.c.skip_blanks();
        let found = self.c.rest().starts_with(token);
        if found {
            for _ in token.chars() {
                self.c.bump();
            }
        }
        found
    }
    pub(super) fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }
    /// Entries with commas between them up to the closing token; there may be none.
    pub(super) fn list(&mut self, close: &str, mut entry: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.eat(close) {
            return Ok(());
        }
        loop {
            entry(self)?;
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }
    /// A list in square brackets.
    pub(super) fn brackets<T>(&mut self, mut entry: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut found = vec![];
        self.expect("[")?;
        self.list("]", |p| entry(p).map(|e| found.push(e)))?;
        Ok(found)
    }
    /// `< key: value, ... >` in front of a graph or function, where there is one. `entry` says whether it knew the key.
    pub(super) fn header(&mut self, mut entry: impl FnMut(&mut Self, &str) -> Result<bool>) -> Result<()> {
        if !self.eat("<") {
            return Ok(());
        }
        self.list(">", |p| {
            let at = p.position();
            let key = p.word()?;
            p.expect(":")?;
            match entry(p, &key)? {
                true => Ok(()),
                false => Err(at.error(format!("`{key}` is no entry of a header here"))),
            }
        })
    }
    /// Runs one level deeper, so that nesting has an end.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.c.error(format!("graphs or types are nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    /// The next word, which stays where it is; empty when there is none.
    pub(super) fn peek_word(&mut self) -> &'t str {
        self.c.skip_blanks();
        self.c.clone().word()
    }
    pub(super) fn word(&mut self) -> Result<String> {
        self.c.skip_blanks();
        match self.c.word() {
            "" => Err(self.expected("a word")),
            word => Ok(word.to_string()),
        }
    }
    fn optional_name(&mut self) -> Result<Option<String>> {
        match self.peek() {
            Some('"') => self.string().map(Some),
            _ => Ok(Some(self.c.word().to_string()).filter(|w| !w.is_empty())),
        }
    }
    /// A word, or anything in quotes.
    pub(super) fn name(&mut self) -> Result<String> {
        match self.optional_name()? {
            Some(name) => Ok(name),
            None => Err(self.expected("a name")),
        }
    }
    /// Names with commas between them. A position left empty is an input or output left out; a comma at the end says nothing.
    pub(super) fn names(&mut self) -> Result<Vec<String>> {
        let mut names = vec![];
        loop {
            match self.optional_name()? {
                Some(name) => names.push(name),
                None if self.peek() == Some(',') => names.push(String::new()),
                None => return Ok(names),
            }
            if !self.eat(",") {
                return Ok(names);
            }
        }
    }

    pub(super) fn string(&mut self) -> Result<String> {
        let at = self.position();
        if !self.c.eat('"') {
            return Err(self.expected("a string"));
        }
        let mut text = String::new();
        loop {
            text += self.c.take_while(|c| c != '"' && c != '\\');
            let end = self.c.bump();
            let next = if end == Some('\\') { self.c.bump() } else { None };
            match (end, next) {
                (Some('"'), _) => return Ok(text),
                (Some(_), Some(next)) => text.push(next),
                _ => return Err(at.error("the string has no end")),
            }
        }
    }
    pub(super) fn int(&mut self) -> Result<i64> {
        let at = self.position();
        match self.literal()? {
            Literal::Int(n) => i64::try_from(n).map_err(|_| at.error(format!("{n} does not fit into 64 bits"))),
            _ => Err(at.error("expected a whole number")),
        }
    }
    pub(super) fn literal(&mut self) -> Result<Literal> {
        if self.peek() == Some('"') {
            return self.string().map(Literal::Str);
        }
        let at = self.position();
        let sign = if self.eat("-") { -1 } else { 1 };
        self.c.skip_blanks();
        match self.c.word().to_ascii_lowercase().as_str() {
            "" => {}
            "inf" | "infinity" => return Ok(Literal::Float(f64::INFINITY * f64::from(sign))),
            "nan" => return Ok(Literal::Float(f64::NAN)),
            word => return Err(at.error(format!("expected a value, found `{word}`"))),
        }
        let mut text = self.c.take_while(|c| c.is_ascii_digit() || c == '.').to_string();
        if text.is_empty() {
            return Err(self.expected("a value"));
        }
        let mut whole = !text.contains('.');
        if self.c.eat('e') || self.c.eat('E') {
            whole = false;
            text.push('e');
            if self.c.eat('-') {
                text.push('-');
            } else {
                self.c.eat('+');
            }
            text += self.c.take_while(|c| c.is_ascii_digit());
        }
        let bad = || at.error(format!("`{}` is not a number", text.chars().take(40).collect::<String>()));
        if whole {
            return text.parse::<i128>().map(|n| Literal::Int(n * i128::from(sign))).map_err(|_| bad());
        }
        text.parse::<f64>().map(|x| Literal::Float(x * f64::from(sign))).map_err(|_| bad())
    }
}
