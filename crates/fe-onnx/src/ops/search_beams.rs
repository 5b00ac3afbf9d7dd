//! The choice of the next tokens. Greedy takes the best one of each row; with beams several rows belong to one sequence, and
//! those that have ended are kept apart with their scores.

use super::search_scores::{Wishes, best, convert, joined};
use carafe_frontend::Compose;
use carafe_graph::{Result, Value};
use carafe_ops::activation::LogSoftmax;
use carafe_ops::indexing::Gather;
use carafe_ops::logic::LogicalNot;
use carafe_ops::reduce::ReduceLogicalAnd;
use carafe_ops::search::topk::TopKMode;
use carafe_tensor::ElementType;

/// How tokens are chosen; values are those of the graph it is used in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub wishes: Wishes,
    pub pad: i64,
    /// Words that may come, where the scores have more.
    pub words: Option<i64>,
    pub beams: Option<Beams>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Beams {
    /// Rows of a sequence, a vector of one.
    pub count: Value,
    /// Tokens of the longest sequence, a vector of one.
    pub longest: Value,
    /// Scores are divided by the length to this power; a scalar.
    pub penalty: Value,
    /// End as soon as there are enough sequences.
    pub early: bool,
}

/// What a step gives.
pub(super) struct Step {
    /// The new token of each row.
    pub tokens: Value,
    /// The row each row goes on from; its own where there are no beams.
    pub rows: Option<Value>,
    pub sequences: Value,
    pub states: Vec<Value>,
    /// Whether there is more to do.
    pub goes_on: Value,
}

impl Search {
    pub(super) fn moved(self, mut to: impl FnMut(Value) -> Result<Value>) -> Result<Search> {
        let wishes = self.wishes.moved(&mut to)?;
        let beams = match self.beams {
            None => None,
            Some(b) => {
                Some(Beams { count: to(b.count)?, longest: to(b.longest)?, penalty: to(b.penalty)?, early: b.early })
            }
        };
        Ok(Search { wishes, beams, ..self })
    }

    /// The states before the first step, for so many rows of tokens.
    pub(super) fn starts<C: Compose>(&self, c: &mut C, sequences: Value) -> Result<Vec<Value>> {
        let rows = c.size(sequences, 0)?;
        let no = c.fixed(carafe_tensor::Tensor::from_f64(ElementType::Boolean, &[], &[0.0])?)?;
        let Some(beams) = self.beams else { return Ok(vec![c.stretch(no, rows)?]) };
        let groups = c.over(rows, beams.count)?;
        // All rows of a sequence are the same at first: the first one counts.
        let count = c.without_axes(beams.count, &[0])?;
        let beam = c.count_to(count, ElementType::I64)?;
        let zero = c.index(0)?;
        let first = c.equal(beam, zero)?;
        let like = c.fixed(carafe_tensor::Tensor::scalar(0f32))?;
        let (some, none) = (c.number(like, 0.0)?, c.number(like, -1e9)?);
        let scores = c.choose(first, some, none)?;
        let shape = joined(c, &[groups, beams.count], 0)?;
        let scores = c.stretch(scores, shape)?;
        let nothing = c.number(like, f64::NEG_INFINITY)?;
        let kept_scores = c.stretch(nothing, shape)?;
        let shape = joined(c, &[groups, beams.count, beams.longest], 0)?;
        let pad = c.fixed(carafe_tensor::Tensor::scalar(self.pad as i32))?;
        let kept = c.stretch(pad, shape)?;
        Ok(vec![scores, kept_scores, kept, c.stretch(no, groups)?])
    }

    /// Chooses by the scores of the last token; `first` tells whether it is the first step.
    pub(super) fn step<C: Compose>(
        &self,
        c: &mut C,
        logits: Value,
        sequences: Value,
        states: &[Value],
        first: Option<Value>,
    ) -> Result<Step> {
        let last = c.part(logits, -1, i64::MAX, 1)?;
        let last = c.without_axes(last, &[1])?;
        let mut scores = convert(c, last, ElementType::F32)?;
        if let Some(words) = self.words {
            scores = c.part(scores, 0, words, 1)?;
        }
        match self.beams {
            None => self.greedy(c, scores, sequences, states[0], first),
            Some(beams) => self.with_beams(c, &beams, scores, sequences, states, first),
        }
    }

    fn greedy<C: Compose>(
        &self,
        c: &mut C,
        scores: Value,
        sequences: Value,
        ended: Value,
        first: Option<Value>,
    ) -> Result<Step> {
        let scores = self.wishes.applied(c, scores, sequences, first)?;
        let one = c.indices(&[1])?;
        let [_, token] = best(c, scores, one, TopKMode::Max)?;
        let token = c.without_axes(token, &[1])?;
        let eos = c.index(self.wishes.eos)?;
        let ends = c.equal(token, eos)?;
        let ended = c.or(ended, ends)?;
        let pad = c.index(self.pad)?;
        let token = c.choose(ended, pad, token)?;
        let tokens = convert(c, token, ElementType::I32)?;
        let column = c.with_axes(tokens, &[1])?;
        let sequences = joined(c, &[sequences, column], 1)?;
        let goes_on = not_all(c, ended)?;
        Ok(Step { tokens, rows: None, sequences, states: vec![ended], goes_on })
    }

    fn with_beams<C: Compose>(
        &self,
        c: &mut C,
        beams: &Beams,
        scores: Value,
        sequences: Value,
        states: &[Value],
        first: Option<Value>,
    ) -> Result<Step> {
        let &[beam_scores, kept_scores, kept, done] = states else {
            return Err(carafe_graph::Error::invalid("a search with beams has four states"));
        };
        let scores = c.put(LogSoftmax { axis: 1 }, &[scores])?;
        let scores = self.wishes.applied(c, scores, sequences, first)?;
        // Twice as many as there are beams: at least half of them do not end.
        let words = c.size(scores, 1)?;
        let groups = c.size(beam_scores, 0)?;
        let apart = joined(c, &[groups, beams.count, words], 0)?;
        let scores = c.reshaped(scores, apart, false)?;
        let own = c.with_axes(beam_scores, &[2])?;
        let scores = c.plus(scores, own)?;
        let all = c.indices(&[-1])?;
        let flat = joined(c, &[groups, all], 0)?;
        let scores = c.reshaped(scores, flat, false)?;
        let two = c.indices(&[2])?;
        let candidates = c.times(beams.count, two)?;
        let [top, position] = best(c, scores, candidates, TopKMode::Max)?;
        let beam = c.over(position, words)?;
        let skipped = c.times(beam, words)?;
        let token = c.minus(position, skipped)?;
        let eos = c.index(self.wishes.eos)?;
        let ends = c.equal(token, eos)?;
        let going = c.put(LogicalNot, &[done])?;
        let going = c.with_axes(going, &[1])?;

        // Those that end, among the first half.
        let rank = c.without_axes(candidates, &[0])?;
        let rank = c.count_to(rank, ElementType::I64)?;
        let early = c.less(rank, beams.count)?;
        let ending = c.and(ends, early)?;
        let ending = c.and(ending, going)?;
        let length = c.length(sequences, 1)?;
        let power = self.length_factor(c, beams, length)?;
        let by_group = self.by_group(c, sequences, groups, beams)?;
        let ended = pick(c, by_group, beam)?;
        let (kept_scores, kept) = self.keep(c, beams, (kept_scores, kept), (top, ending, power), ended)?;

        // The first of those that go on.
        let behind = c.plus(rank, candidates)?;
        let order = c.choose(ends, behind, rank)?;
        let [_, chosen] = best(c, order, beams.count, TopKMode::Min)?;
        let next_scores = pick(c, top, chosen)?;
        let (next_token, next_beam) = (pick(c, token, chosen)?, pick(c, beam, chosen)?);
        let (none, pad, zero) = (c.number(top, 0.0)?, c.index(self.pad)?, c.index(0)?);
        let next_scores = c.choose(going, next_scores, none)?;
        let next_token = c.choose(going, next_token, pad)?;
        let next_beam = c.choose(going, next_beam, zero)?;

        // A sequence is done when what is kept cannot become better.
        let worst = c.part(kept_scores, -1, i64::MAX, 1)?;
        let worst = c.without_axes(worst, &[1])?;
        let nothing = c.number(worst, f64::NEG_INFINITY)?;
        let mut full = c.greater(worst, nothing)?;
        if !beams.early {
            let best_now = self.looked_at(c, beams, top, groups, candidates)?;
            let best_now = c.over(best_now, power)?;
            let settled = c.greater_equal(worst, best_now)?;
            full = c.and(full, settled)?;
        }
        let done = c.or(done, full)?;

        let group = c.without_axes(groups, &[0])?;
        let group = c.count_to(group, ElementType::I64)?;
        let group = c.with_axes(group, &[1])?;
        let offset = c.times(group, beams.count)?;
        let rows = c.plus(offset, next_beam)?;
        let flat = c.indices(&[-1])?;
        let rows = c.reshaped(rows, flat, false)?;
        let tokens = c.reshaped(next_token, flat, false)?;
        let tokens = convert(c, tokens, ElementType::I32)?;
        let past = c.gather(sequences, rows, 0)?;
        let column = c.with_axes(tokens, &[1])?;
        let sequences = joined(c, &[past, column], 1)?;
        let goes_on = not_all(c, done)?;
        Ok(Step { tokens, rows: Some(rows), sequences, states: vec![next_scores, kept_scores, kept, done], goes_on })
    }

    /// The best sequences and their scores at the end; `[group, beam, token]` and `[group, beam]`.
    pub(super) fn finish<C: Compose>(
        &self,
        c: &mut C,
        beams: &Beams,
        sequences: Value,
        states: &[Value],
    ) -> Result<[Value; 2]> {
        let &[beam_scores, kept_scores, kept, done] = states else {
            return Err(carafe_graph::Error::invalid("a search with beams has four states"));
        };
        let going = c.put(LogicalNot, &[done])?;
        let going = c.with_axes(going, &[1])?;
        let length = c.length(sequences, 1)?;
        let power = self.length_factor(c, beams, length)?;
        let groups = c.size(beam_scores, 0)?;
        let open = self.by_group(c, sequences, groups, beams)?;
        let (scores, kept) = self.keep(c, beams, (kept_scores, kept), (beam_scores, going, power), open)?;
        Ok([kept, scores])
    }

    fn length_factor<C: Compose>(&self, c: &mut C, beams: &Beams, length: Value) -> Result<Value> {
        let length = convert(c, length, ElementType::F32)?;
        c.power(length, beams.penalty)
    }

    fn by_group<C: Compose>(&self, c: &mut C, sequences: Value, groups: Value, beams: &Beams) -> Result<Value> {
        let length = c.size(sequences, 1)?;
        let shape = joined(c, &[groups, beams.count, length], 0)?;
        c.reshaped(sequences, shape, false)
    }

    // The best of what is kept and of further sequences where `taken` holds.
    fn keep<C: Compose>(
        &self,
        c: &mut C,
        beams: &Beams,
        (kept_scores, kept): (Value, Value),
        (sums, taken, power): (Value, Value, Value),
        sequences: Value,
    ) -> Result<(Value, Value)> {
        let scores = c.over(sums, power)?;
        let nothing = c.number(scores, f64::NEG_INFINITY)?;
        let scores = c.choose(taken, scores, nothing)?;
        let scores = joined(c, &[kept_scores, scores], 1)?;
        let [scores, position] = best(c, scores, beams.count, TopKMode::Max)?;
        let whole = filled_up(c, sequences, 2, beams.longest, self.pad)?;
        let all = joined(c, &[kept, whole], 1)?;
        Ok((scores, pick(c, all, position)?))
    }

    // onnxruntime compares with scores from the group's number times the beams on, not times the candidates.
    fn looked_at<C: Compose>(
        &self,
        c: &mut C,
        beams: &Beams,
        top: Value,
        groups: Value,
        candidates: Value,
    ) -> Result<Value> {
        let flat = c.indices(&[-1])?;
        let flat = c.reshaped(top, flat, false)?;
        let group = c.without_axes(groups, &[0])?;
        let group = c.count_to(group, ElementType::I64)?;
        let group = c.with_axes(group, &[1])?;
        let first = c.times(group, beams.count)?;
        let within = c.without_axes(candidates, &[0])?;
        let within = c.count_to(within, ElementType::I64)?;
        let at = c.plus(first, within)?;
        let seen = c.gather(flat, at, 0)?;
        c.max_over(seen, &[1], false)
    }
}

// Elements of axis 1, row by row.
fn pick<C: Compose>(c: &mut C, rows: Value, positions: Value) -> Result<Value> {
    let axis = c.index(1)?;
    c.put(Gather { batch_dims: 1 }, &[rows, positions, axis])
}

/// As long as `length` (a vector of one) along an axis, with `pad` behind.
pub(super) fn filled_up<C: Compose>(c: &mut C, v: Value, axis: i64, length: Value, pad: i64) -> Result<Value> {
    let own = c.size(v, axis)?;
    let (missing, zero) = (c.minus(length, own)?, c.indices(&[0])?);
    let missing = c.max(missing, zero)?;
    let mut dims = vec![];
    for i in 0..=axis {
        dims.push(if i == axis { missing } else { c.size(v, i)? });
    }
    let shape = joined(c, &dims, 0)?;
    let pad = c.number(v, pad as f64)?;
    let fill = c.stretch(pad, shape)?;
    let all = joined(c, &[v, fill], axis)?;
    c.cut(all, zero, length, axis)
}

fn not_all<C: Compose>(c: &mut C, ended: Value) -> Result<Value> {
    let axis = c.indices(&[0])?;
    let all = c.put(ReduceLogicalAnd { keep_dims: false }, &[ended, axis])?;
    c.put(LogicalNot, &[all])
}
