//! TextTokens: texts taken apart by regular expressions in the syntax of RE2, either at what separates tokens or into what
//! is one. A match is the longest one from the first position where there is any. All rows become as long as the longest.

use super::text::require_text;
use super::text_matches::rewritten;
use crate::buffer::filled;
use carafe_graph::{Error, EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use regex::Regex;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input, MatchKind};

/// The tokens of every text along a new last axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, separators?")]
pub struct TextTokens {
    /// What a token is, where no separators are given; `.` gives the letters. Each separator cuts what those before it
    /// left; an empty one alone gives the letters.
    #[attr(default = String::new())]
    pub token: String,
    /// Tokens of fewer letters are dropped.
    #[attr(default = 1)]
    pub min_letters: i64,
    /// Put U+0002 before and U+0003 behind the tokens of a text.
    #[attr(default = false)]
    pub mark: bool,
    /// What rows are filled up with.
    #[attr(default = String::new())]
    pub pad: String,
}

impl Op for TextTokens {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.require_rank(0, &[1, 2])?;
        let least = self.min_letters;
        cx.require(least >= 1, || format!("attribute `min_letters` must be above 0, found {least}"))?;
        if cx.has(1) {
            require_text(cx, 1)?;
            cx.require_rank(1, &[1])?;
        } else {
            Cutter::new(&self.token, None)?;
        }
        let tokens = match cx.shape(0).dims() {
            // Without any text there is no axis to add.
            Some(dims) if dims.iter().all(|d| d.min() > 0) => {
                PartialShape::new(dims.iter().copied().chain([Dim::ANY]))
            }
            _ => PartialShape::dynamic(),
        };
        cx.set(0, ElementType::String, tokens);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        if shape.iter().product::<usize>() == 0 {
            let empty = [&shape[..shape.len() - 1], &[0]].concat();
            return cx.set(0, Tensor::from_strings(&empty, vec![])?);
        }
        let separators = if cx.has(1) { Some(cx.input(1).strings()?) } else { None };
        let cutter = Cutter::new(&self.token, separators)?;
        let texts = cx.input(0).strings()?;
        let rows: Vec<Vec<&str>> = texts.iter().map(|text| cutter.tokens(text, self.min_letters as usize)).collect();
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = if longest > 0 && self.mark { longest + 2 } else { longest };
        let whole = [&shape[..], &[width]].concat();
        let mut all = filled(&whole, self.pad.clone())?;
        for (slots, row) in all.chunks_exact_mut(width.max(1)).zip(&rows) {
            let tokens = row.iter().map(|t| t.to_string());
            let (front, back) = if self.mark { (Some("\u{2}"), Some("\u{3}")) } else { (None, None) };
            let marked = front.map(String::from).into_iter().chain(tokens).chain(back.map(String::from));
            slots.iter_mut().zip(marked).for_each(|(slot, token)| *slot = token);
        }
        cx.set(0, Tensor::from_strings(&whole, all)?)
    }
}

enum Cutter {
    Letters,
    At(Vec<Longest>),
    Into(Longest),
}

impl Cutter {
    fn new(token: &str, separators: Option<&[String]>) -> Result<Cutter> {
        match (separators, token) {
            (Some([one]), _) if one.is_empty() => Ok(Cutter::Letters),
            (Some(separators), _) => Ok(Cutter::At(separators.iter().map(|s| Longest::new(s)).collect::<Result<_>>()?)),
            (None, ".") => Ok(Cutter::Letters),
            (None, "") => Err(Error::invalid("either separators or attribute `token` must be given")),
            (None, token) => Ok(Cutter::Into(Longest::new(token)?)),
        }
    }

    fn tokens<'t>(&self, text: &'t str, least: usize) -> Vec<&'t str> {
        let long_enough = |token: &&str| token.chars().nth(least - 1).is_some();
        match self {
            Cutter::Letters => text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect(),
            Cutter::At(separators) => {
                let mut parts = vec![text];
                for separator in separators {
                    parts = parts.iter().flat_map(|part| separator.between(part)).filter(long_enough).collect();
                }
                parts
            }
            Cutter::Into(token) => {
                let (mut found, mut from) = (vec![], 0);
                while let Some((start, end)) = token.find(text, from) {
                    if long_enough(&&text[start..end]) {
                        found.push(&text[start..end]);
                        from = end;
                    } else {
                        from = start + letter_at(text, start);
                    }
                }
                found
            }
        }
    }
}

// Bytes of the letter at a position, 1 at the end.
fn letter_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

/// An expression of which the longest match is wanted.
struct Longest {
    first: Regex,
    all: PikeVM,
}

impl Longest {
    fn new(pattern: &str) -> Result<Longest> {
        let bad = |why: &dyn std::fmt::Display| Error::invalid(format!("pattern `{pattern}` is not understood: {why}"));
        let inner = rewritten(pattern).map_err(|why| bad(&why))?;
        let first = Regex::new(&inner).map_err(|e| bad(&e))?;
        let config = PikeVM::config().match_kind(MatchKind::All);
        let all = PikeVM::builder().configure(config).build(&inner).map_err(|e| bad(&e))?;
        Ok(Longest { first, all })
    }

    fn find(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        if from > text.len() {
            return None;
        }
        let found = self.first.find_at(text, from)?;
        let input = Input::new(text).span(found.start()..text.len()).anchored(Anchored::Yes);
        let longest = self.all.find(&mut self.all.create_cache(), input);
        Some((found.start(), longest.map_or(found.end(), |m| m.end().max(found.end()))))
    }

    // What lies between matches.
    fn between<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let (mut parts, mut from) = (vec![], 0);
        while let Some((start, end)) = self.find(text, from) {
            parts.push(&text[from..start]);
            from = if end > start { end } else { start + letter_at(text, start) };
        }
        if from <= text.len() {
            parts.push(&text[from..]);
        }
        parts
    }
}
