//! TextMatches: whether a whole text matches a regular expression in the syntax of RE2. There `\d`, `\w`, `\s` and `\b` know
//! ASCII only and `[` means itself inside of a class; the pattern is rewritten where the matcher reads it otherwise.

use super::text::require_text;
use carafe_graph::{Error, EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};
use regex::Regex;
use std::iter::Peekable;
use std::str::Chars;

/// True for every text that matches from its first to its last letter.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct TextMatches {
    /// The pattern that a text must match from begin to end.
    pub pattern: String,
}

impl Op for TextMatches {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        compiled(&self.pattern)?;
        cx.set(0, ElementType::Boolean, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let regex = compiled(&self.pattern)?;
        let found: Vec<u8> = cx.input(0).strings()?.iter().map(|s| u8::from(regex.is_match(s))).collect();
        let shape = cx.shape(0).to_vec();
        cx.set(0, Tensor::from_bytes(ElementType::Boolean, &shape, &found)?)
    }
}

fn compiled(pattern: &str) -> Result<Regex> {
    let bad = |why: &dyn std::fmt::Display| Error::invalid(format!("pattern `{pattern}` is not understood: {why}"));
    let inner = rewritten(pattern).map_err(|why| bad(&why))?;
    Regex::new(&format!(r"\A(?:{inner})\z")).map_err(|e| bad(&e))
}

// What stands behind a backslash, in ASCII.
fn ascii_class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\x0C\r ]",
        'S' => r"[^\t\n\x0C\r ]",
        _ => return None,
    })
}

/// The pattern as the matcher reads it.
pub(super) fn rewritten(pattern: &str) -> std::result::Result<String, String> {
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => escaped(&mut rest, &mut out, false)?,
            '[' => class(&mut rest, &mut out)?,
            // Braces that are no count mean themselves.
            '{' if !is_count(rest.clone()) => out.push_str(r"\{"),
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn escaped(rest: &mut Peekable<Chars<'_>>, out: &mut String, in_class: bool) -> std::result::Result<(), String> {
    match rest.next() {
        None => return Err("it ends with a backslash".to_string()),
        Some('Q') if !in_class => {
            let mut literal = String::new();
            while let Some(c) = rest.next() {
                if c == '\\' && rest.next_if_eq(&'E').is_some() {
                    break;
                }
                literal.push(c);
            }
            out.push_str(&regex::escape(&literal));
        }
        Some('C') => return Err(r"`\C` matches parts of a letter".to_string()),
        Some(b @ ('b' | 'B')) if !in_class => out.push_str(&format!(r"(?-u:\{b})")),
        Some(octal @ '0'..='7') if octal == '0' || rest.peek().is_some_and(|c| ('0'..='7').contains(c)) => {
            let mut value = octal.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                match rest.next_if(|c| ('0'..='7').contains(c)) {
                    Some(digit) => value = value * 8 + digit.to_digit(8).unwrap_or(0),
                    None => break,
                }
            }
            out.push_str(&format!(r"\x{{{value:X}}}"));
        }
        Some(c) => match ascii_class(c) {
            Some(class) => out.push_str(class),
            None => out.extend(['\\', c]),
        },
    }
    Ok(())
}

// A class up to its end; `]` in front means itself, and so do the signs that only the matcher gives a meaning.
fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> std::result::Result<(), String> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        match rest.next() {
            None => return Err("a class has no end".to_string()),
            Some(']') if !first => break,
            Some('\\') => escaped(rest, out, true)?,
            Some('[') if rest.peek() == Some(&':') => {
                out.push('[');
                for c in rest.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            Some(c @ ('[' | ']' | '&' | '~')) => out.extend(['\\', c]),
            Some(c) => out.push(c),
        }
        first = false;
    }
    out.push(']');
    Ok(())
}

// `3}`, `3,}` or `3,5}`.
fn is_count(mut rest: Peekable<Chars<'_>>) -> bool {
    let mut digits = 0;
    while rest.next_if(char::is_ascii_digit).is_some() {
        digits += 1;
    }
    if rest.next_if_eq(&',').is_some() {
        while rest.next_if(char::is_ascii_digit).is_some() {}
    }
    digits > 0 && rest.next() == Some('}')
}
