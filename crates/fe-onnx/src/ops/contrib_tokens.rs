//! Operations of `com.microsoft` over tokens: Tokenizer makes them of texts, BifurcationDetector compares what was generated with a source text
//! and finds where to go on in it.

use super::contrib::MS;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::logic::LogicalNot;
use carafe_ops::carafe::TextTokens;
use carafe_ops::reduce::{ReduceLogicalAnd, ReduceMin};
use carafe_ops::search::CumSum;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] =
    &[rule_in(MS, "BifurcationDetector", 1, bifurcation_detector), rule_in(MS, "Tokenizer", 1, tokenizer)];

// More lengths than any model has; each takes a search of its own.
const MOST_LENGTHS: i64 = 64;

fn tokenizer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (separators, token): (Vec<String>, String) = (n.attr("separators", vec![])?, n.attr("tokenexp", String::new())?);
    if separators.is_empty() == token.is_empty() {
        return Err(n.fail("exactly one of separators and tokenexp must be set"));
    }
    let op = TextTokens {
        token,
        min_letters: n.required("mincharnum")?,
        mark: n.required::<i64>("mark")? != 0,
        pad: n.required("pad_value")?,
    };
    let mut inputs = vec![n.input(0)?];
    if !separators.is_empty() {
        inputs.push(n.constant(Tensor::from_strings(&[separators.len()], separators)?)?);
    }
    Ok(n.emit(op, &inputs)?.into())
}

fn bifurcation_detector(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (min, max): (i64, i64) = (n.attr("min_ngram_size", 1)?, n.attr("max_ngram_size", 3)?);
    if min < 1 || max < min {
        return Err(n.fail(format!("ngram sizes must be above 0 and in order, found {min} to {max}")));
    }
    if max - min >= MOST_LENGTHS {
        return Err(n.unsupported(format!("at most {MOST_LENGTHS} ngram sizes are supported, found {min} to {max}")));
    }
    let (source, current, matched) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let tokens = match n.opt(3)? {
        Some(predicted) => {
            let taken = agreeing(n, source, matched, predicted)?;
            n.concat(&[current, taken], 0)?
        }
        None => current,
    };
    let position = position_of_suffix(n, source, tokens, min, max)?;
    let shape = n.shape_of(matched)?;
    let position = n.reshaped(position, shape, false)?;
    Ok(vec![tokens, position].into())
}

// Predicted tokens as long as they are those of the source, and the first other one.
fn agreeing(n: &mut NodeCx<'_>, source: Value, matched: Value, predicted: Value) -> Result<Value> {
    let (zero, all) = (n.i64s(&[0])?, n.i64s(&[i64::MAX])?);
    let start = n.reshape(matched, &[1])?;
    let start = n.max(start, zero)?;
    let expected = n.cut(source, start, all, 0)?;
    // One more is predicted than is left of the source; where it is not so, what both have is compared.
    let (left, given) = (n.size(expected, 0)?, n.size(predicted, 0)?);
    let count = n.min(left, given)?;
    let (expected, same) = (n.cut(expected, zero, count, 0)?, n.cut(predicted, zero, count, 0)?);
    let same = n.equal(same, expected)?;
    let other = n.emit(LogicalNot, &[same])?;
    let other = n.convert(other, ElementType::I64)?;
    let axis = n.i64(0)?;
    let others = n.emit(CumSum { exclusive: false, reverse: false }, &[other, axis])?;
    let none = n.i64(0)?;
    let before = n.equal(others, none)?;
    let before = n.convert(before, ElementType::I64)?;
    let length = n.sum_over(before, &[0], true)?;
    let one = n.i64s(&[1])?;
    let stop = n.plus(length, one)?;
    n.cut(predicted, zero, stop, 0)
}

// The position behind the last tokens in the source, found there once; -1 where it is not known. Longer endings are tried as
// long as the shorter one is found.
fn position_of_suffix(n: &mut NodeCx<'_>, source: Value, tokens: Value, min: i64, max: i64) -> Result<Value> {
    let (length, count) = (n.length(source, 0)?, n.length(tokens, 0)?);
    let mut position = n.i64(-1)?;
    let mut going = n.scalar(ElementType::Boolean, 1.0)?;
    for size in min..=max {
        let wanted = n.i64(size)?;
        let enough = n.greater_equal(count, wanted)?;
        going = n.and(going, enough)?;
        let (first, second) = positions(n, [source, length], [tokens, count], size)?;
        let found = n.less(first, length)?;
        // A position that was found before stays when this one is not.
        let taken = n.and(going, found)?;
        let behind = n.plus(first, wanted)?;
        let within = n.less(behind, length)?;
        let twice = n.less(second, length)?;
        let ambiguous = n.and(within, twice)?;
        let unknown = n.i64(-1)?;
        let here = n.choose(ambiguous, unknown, behind)?;
        position = n.choose(taken, here, position)?;
        going = n.and(taken, within)?;
    }
    Ok(position)
}

// The first two positions where the last `size` tokens lie in the source; its length where there are none.
fn positions(
    n: &mut NodeCx<'_>,
    [source, length]: [Value; 2],
    [tokens, count]: [Value; 2],
    size: i64,
) -> Result<(Value, Value)> {
    let (size, zero, one) = (n.i64(size)?, n.i64(0)?, n.i64(1)?);
    let within = n.count_to(size, ElementType::I64)?;
    // One token more, so that there is always one to look at.
    let nothing = n.i64s(&[0])?;
    let ending = n.concat(&[nothing, tokens], 0)?;
    let start = n.minus(count, size)?;
    let start = n.plus(start, one)?;
    let at = n.plus(within, start)?;
    let at = n.max(at, zero)?;
    let ending = n.gather(ending, at, 0)?;
    let filled = n.concat(&[source, nothing], 0)?;
    let starts = n.count_to(length, ElementType::I64)?;
    let columns = n.unsqueeze(starts, &[1])?;
    let at = n.plus(columns, within)?;
    let at = n.min(at, length)?;
    let windows = n.gather(filled, at, 0)?;
    let same = n.equal(windows, ending)?;
    let last = n.i64s(&[1])?;
    let same = n.emit(ReduceLogicalAnd { keep_dims: false }, &[same, last])?;
    let end = n.plus(starts, size)?;
    let whole = n.less_equal(end, length)?;
    let same = n.and(same, whole)?;
    let first = least(n, same, starts, length)?;
    let later = n.greater(starts, first)?;
    let later = n.and(same, later)?;
    Ok((first, least(n, later, starts, length)?))
}

fn least(n: &mut NodeCx<'_>, there: Value, positions: Value, none: Value) -> Result<Value> {
    let positions = n.choose(there, positions, none)?;
    let end = n.reshape(none, &[1])?;
    let positions = n.concat(&[positions, end], 0)?;
    let axis = n.i64s(&[0])?;
    n.emit(ReduceMin { keep_dims: false }, &[positions, axis])
}
