//! The characters of a case file, with the line of every error. Newlines are white space except where an option may
//! follow (`spaces` stops at them), and `#` starts a comment anywhere outside of quotes.

use crate::case::CaseError;
use std::path::Path;

pub(crate) struct Scan<'a> {
    file: &'a Path,
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Scan<'a> {
        Scan { file, text, at: 0 }
    }

    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(crate) fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    pub(crate) fn fail(&self, message: impl Into<String>) -> CaseError {
        CaseError { file: self.file.to_path_buf(), line: self.line(), message: message.into() }
    }

    pub(crate) fn fail_expecting<T>(&self, wanted: &str) -> Result<T, CaseError> {
        let found: String = self.rest().lines().next().unwrap_or_default().chars().take(20).collect();
        let found = if found.is_empty() { "the end of the line".to_string() } else { format!("`{found}`") };
        Err(self.fail(format!("expected {wanted}, found {found}")))
    }

    /// Skips blanks, newlines and comments.
    pub(crate) fn skip(&mut self) {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Skips blanks within the line.
    pub(crate) fn spaces(&mut self) {
        let trimmed = self.rest().trim_start_matches([' ', '\t', '\r']);
        self.at = self.text.len() - trimmed.len();
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// Whether `token` comes next, past white space; moves nowhere.
    pub(crate) fn sees(&mut self, token: &str) -> bool {
        let start = self.at;
        let there = self.take(token);
        self.at = start;
        there
    }

    /// Moves past `token` if it comes next, past white space.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        let start = self.at;
        self.skip();
        let there = self.rest().starts_with(token);
        self.at = if there { self.at + token.len() } else { start };
        there
    }

    pub(crate) fn expect(&mut self, token: &str) -> Result<(), CaseError> {
        if self.take(token) { Ok(()) } else { self.fail_expecting(&format!("`{token}`")) }
    }

    /// The longest run of characters that `fits`, from the very next one; may be empty.
    pub(crate) fn run(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A name of an operation, a label or an attribute.
    pub(crate) fn name(&mut self, what: &str) -> Result<&'a str, CaseError> {
        self.skip();
        let start = self.at;
        let mut name = self.run(|c| c.is_alphanumeric() || "_-.".contains(c));
        // `x->` is the name `x` and an arrow.
        if name.ends_with('-') && self.rest().starts_with('>') {
            self.at -= 1;
            name = &name[..name.len() - 1];
        }
        if name.is_empty() {
            self.at = start;
            return self.fail_expecting(what);
        }
        Ok(name)
    }

    /// Text between two characters, on one line; the opening one comes next.
    pub(crate) fn between(&mut self, open: &str, close: char) -> Result<&'a str, CaseError> {
        self.expect(open)?;
        let rest = self.rest();
        match rest.find([close, '\n']) {
            Some(end) if rest[end..].starts_with(close) => {
                self.at += end + close.len_utf8();
                Ok(&rest[..end])
            }
            _ => self.fail_expecting(&format!("a closing `{close}`")),
        }
    }

    /// A quoted text with the escapes `\"`, `\\`, `\n`, `\t` and `\u{..}`.
    pub(crate) fn quoted(&mut self) -> Result<String, CaseError> {
        self.expect("\"")?;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\n' => break,
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some(c @ ('"' | '\\')) => out.push(c),
                    Some('u') => {
                        let code: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                        let code = u32::from_str_radix(code.trim_start_matches('{'), 16).ok();
                        match code.and_then(char::from_u32) {
                            Some(c) => out.push(c),
                            None => return Err(self.fail("a `\\u` escape needs a character number: `\\u{e9}`")),
                        }
                    }
                    _ => return Err(self.fail("the escapes are \\\" \\\\ \\n \\t \\u{..}")),
                },
                c => out.push(c),
            }
        }
        self.fail_expecting("a closing `\"`")
    }
}
