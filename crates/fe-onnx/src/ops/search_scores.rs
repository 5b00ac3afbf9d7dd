//! What the searches of `com.microsoft` do to the scores of the next token before they choose one. Rows of scores are
//! `[row, word]`, sequences `[row, token]`. All of it works in the outer graph and in the body of a loop.

use carafe_frontend::Compose;
use carafe_graph::{Result, Value};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate};
use carafe_ops::movement::Concat;

use carafe_ops::reduce::ReduceLogicalAnd;
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::ElementType;

/// Rules about the next token; values are those of the graph they are applied in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// Scores of words that were there are divided by it, or multiplied below 0.
    pub repetition: Option<Value>,
    /// No sequence of so many tokens comes twice; 0 allows it.
    pub ngram: i64,
    /// 0 for words that must not come; `[word]`.
    pub allowed: Option<Value>,
    /// The same for the first token; `[row, word]`.
    pub allowed_first: Option<Value>,
    /// The end must not come before so many tokens.
    pub min_length: Option<Value>,
    pub eos: i64,
}

impl Wishes {
    pub(super) fn moved(self, mut to: impl FnMut(Value) -> Result<Value>) -> Result<Wishes> {
        let mut opt = |v: Option<Value>| v.map(&mut to).transpose();
        Ok(Wishes {
            repetition: opt(self.repetition)?,
            allowed: opt(self.allowed)?,
            allowed_first: opt(self.allowed_first)?,
            min_length: opt(self.min_length)?,
            ..self
        })
    }

    /// `first` tells whether it is the first step; nothing when it cannot be.
    pub(super) fn applied<C: Compose>(
        &self,
        c: &mut C,
        mut scores: Value,
        sequences: Value,
        first: Option<Value>,
    ) -> Result<Value> {
        let never = c.number(scores, f64::from(f32::MIN))?;
        let words = c.length(scores, 1)?;
        if let Some(penalty) = self.repetition {
            let there = marked(c, scores, sequences)?;
            let zero = c.number(scores, 0.0)?;
            let below = c.less(scores, zero)?;
            let (more, less) = (c.times(scores, penalty)?, c.over(scores, penalty)?);
            let changed = c.choose(below, more, less)?;
            scores = c.choose(there, changed, scores)?;
        }
        if self.ngram > 0 {
            scores = without_repeats(c, scores, sequences, self.ngram, never)?;
        }
        let allow = |c: &mut C, scores: Value, mask: Value, when: Option<Value>| -> Result<Value> {
            let zero = c.number(mask, 0.0)?;
            let mut blocked = c.equal(mask, zero)?;
            if let Some(when) = when {
                blocked = c.and(blocked, when)?;
            }
            c.choose(blocked, never, scores)
        };
        if let Some(mask) = self.allowed {
            scores = allow(c, scores, mask, None)?;
        }
        if let (Some(mask), Some(first)) = (self.allowed_first, first) {
            scores = allow(c, scores, mask, Some(first))?;
        }
        if let Some(least) = self.min_length {
            let length = c.length(sequences, 1)?;
            let short = c.less(length, least)?;
            let (word, eos) = (c.count_to(words, ElementType::I64)?, c.index(self.eos)?);
            let end = c.equal(word, eos)?;
            let blocked = c.and(end, short)?;
            scores = c.choose(blocked, never, scores)?;
        }
        Ok(scores)
    }
}

/// Scores with `never` for each token that would end a run of `size` tokens that was there before.
pub(super) fn without_repeats<C: Compose>(
    c: &mut C,
    scores: Value,
    sequences: Value,
    size: i64,
    never: Value,
) -> Result<Value> {
    let words = c.length(scores, 1)?;
    let next = after_repeated(c, sequences, size, words)?;
    let blocked = marked(c, scores, next)?;
    c.choose(blocked, never, scores)
}

// The tokens that followed where the last ones were seen before; the number of words where they were not.
fn after_repeated<C: Compose>(c: &mut C, sequences: Value, size: i64, none: Value) -> Result<Value> {
    let before = size - 1;
    let sequences = convert(c, sequences, ElementType::I64)?;
    let (length, zero) = (c.length(sequences, 1)?, c.index(0)?);
    let starts = c.plus_number(length, -before as f64)?;
    let starts = c.max(starts, zero)?;
    let starts = c.count_to(starts, ElementType::I64)?;
    let behind = c.plus_number(starts, before as f64)?;
    let next = c.gather(sequences, behind, 1)?;
    if before == 0 {
        return Ok(next);
    }
    let within = c.index(before)?;
    let within = c.count_to(within, ElementType::I64)?;
    let columns = c.with_axes(starts, &[1])?;
    let windows = c.plus(columns, within)?;
    let windows = c.gather(sequences, windows, 1)?;
    let last = c.plus_number(length, -before as f64)?;
    let last = c.plus(within, last)?;
    let last = c.max(last, zero)?;
    let last = c.gather(sequences, last, 1)?;
    let last = c.with_axes(last, &[1])?;
    let same = c.equal(windows, last)?;
    let axis = c.indices(&[2])?;
    let same = c.put(ReduceLogicalAnd { keep_dims: false }, &[same, axis])?;
    c.choose(same, next, none)
}

// True for the words among the tokens of each row.
fn marked<C: Compose>(c: &mut C, scores: Value, tokens: Value) -> Result<Value> {
    let tokens = convert(c, tokens, ElementType::I64)?;
    let words = c.length(scores, 1)?;
    // One column more, for tokens that are no words.
    let zero = c.index(0)?;
    let (negative, behind) = (c.less(tokens, zero)?, c.greater(tokens, words)?);
    let odd = c.or(negative, behind)?;
    let tokens = c.choose(odd, words, tokens)?;
    let (rows, one) = (c.size(scores, 0)?, c.indices(&[1])?);
    let columns = c.size(scores, 1)?;
    let more = c.plus(columns, one)?;
    let shape = joined(c, &[rows, more], 0)?;
    let marks = c.stretch(zero, shape)?;
    let like = c.put(carafe_ops::shape::ShapeOf { output_type: ElementType::I64 }, &[tokens])?;
    let mark = c.index(1)?;
    let mark = c.stretch(mark, like)?;
    let axis = c.index(1)?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    let marks = c.put(op, &[marks, tokens, mark, axis])?;
    let start = c.indices(&[0])?;
    let marks = c.cut(marks, start, columns, 1)?;
    c.greater(marks, zero)
}

pub(super) fn convert<C: Compose>(c: &mut C, v: Value, ty: ElementType) -> Result<Value> {
    if c.element(v) == ty { Ok(v) } else { c.put(Convert { destination_type: ty }, &[v]) }
}

pub(super) fn joined<C: Compose>(c: &mut C, values: &[Value], axis: i64) -> Result<Value> {
    c.put(Concat { axis }, values)
}

/// The best of each row and where they lie, best first; `count` is a vector of one.
pub(super) fn best<C: Compose>(c: &mut C, rows: Value, count: Value, mode: TopKMode) -> Result<[Value; 2]> {
    let count = c.without_axes(count, &[0])?;
    let op = TopK { axis: 1, mode, sort: TopKSort::Value, index_element_type: ElementType::I64, stable: true };
    let both = c.put_all(op, &[rows, count])?;
    Ok([both[0], both[1]])
}
