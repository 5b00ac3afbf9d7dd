//! TextReplace: what a regular expression matches, in the syntax of RE2, becomes another text. There `\0` is the whole match
//! and `\1` to `\9` are its groups; `text_matches.rs` says how patterns are read.

use super::text::require_text;
use super::text_matches::rewritten;
use carafe_graph::{Error, EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};
use regex::{Captures, Regex};

/// Replaces what a pattern matches in every text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct TextReplace {
    /// The pattern.
    pub pattern: String,
    /// What stands in place of a match.
    #[attr(default = String::new())]
    pub rewrite: String,
    /// Replace every match, not the first one alone.
    #[attr(default = true)]
    pub all: bool,
}

impl Op for TextReplace {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        self.compiled()?;
        cx.set(0, ElementType::String, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (regex, parts) = self.compiled()?;
        let put = |found: &Captures<'_>| {
            let mut text = String::new();
            for part in &parts {
                match part {
                    Part::Text(literal) => text.push_str(literal),
                    Part::Group(i) => text.push_str(found.get(*i).map_or("", |m| m.as_str())),
                }
            }
            text
        };
        let most = if self.all { 0 } else { 1 };
        let texts = cx.input(0).strings()?.iter().map(|text| regex.replacen(text, most, put).into_owned()).collect();
        let shape = cx.shape(0).to_vec();
        cx.set(0, Tensor::from_strings(&shape, texts)?)
    }
}

enum Part {
    Text(String),
    Group(usize),
}

impl TextReplace {
    fn compiled(&self) -> Result<(Regex, Vec<Part>)> {
        let (pattern, rewrite) = (&self.pattern, &self.rewrite);
        let bad = |why: &dyn std::fmt::Display| Error::invalid(format!("pattern `{pattern}` is not understood: {why}"));
        let regex = rewritten(pattern).map_err(|why| bad(&why)).and_then(|p| Regex::new(&p).map_err(|e| bad(&e)))?;
        let mut parts = vec![];
        let mut letters = rewrite.chars();
        while let Some(c) = letters.next() {
            let literal = match (c, if c == '\\' { letters.next() } else { None }) {
                ('\\', Some('\\')) => '\\',
                ('\\', Some(digit @ '0'..='9')) => {
                    let group = digit as usize - '0' as usize;
                    if group >= regex.captures_len() {
                        return Err(Error::invalid(format!("`{rewrite}` needs group {group}, `{pattern}` has none")));
                    }
                    parts.push(Part::Group(group));
                    continue;
                }
                ('\\', _) => {
                    return Err(Error::invalid(format!("a backslash of `{rewrite}` stands before no digit")));
                }
                (c, _) => c,
            };
            match parts.last_mut() {
                Some(Part::Text(text)) => text.push(literal),
                _ => parts.push(Part::Text(literal.to_string())),
            }
        }
        Ok((regex, parts))
    }
}
