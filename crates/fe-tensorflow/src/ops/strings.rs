//! Operations on strings. OpenVINO has none but those of its tokenizers, so these are of the opset `carafe`. Strings of
//! TensorFlow are bytes; see `carafe_tensor::text_of_bytes` for how bytes that are no letters are kept.

use super::common::shapes::{i64_vector, scalar};
use super::indexing::places_of_true;
use super::shape::filled;
use super::types::element_type;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::carafe::text_map::TextAction;
use carafe_ops::carafe::text_part::TextUnit;
use carafe_ops::carafe::text_pieces::CutAt;
use carafe_ops::carafe::{
    ConvertText, TextConcat, TextHash, TextLength, TextMap, TextMatches, TextNgrams, TextPart, TextPieces, TextReplace,
};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("AsString", 0, as_string),
    rule("RegexFullMatch", 0, |n| {
        let (x, pattern) = (n.input(0)?, text_input(n, 1, "the pattern")?);
        Ok(n.emit(TextMatches { pattern }, &[x])?.into())
    }),
    rule("RegexReplace", 0, |n| {
        let (pattern, rewrite) = (text_input(n, 1, "the pattern")?, text_input(n, 2, "the rewrite")?);
        let (x, all) = (n.input(0)?, n.attr("replace_global", true)?);
        Ok(n.emit(TextReplace { pattern, rewrite, all }, &[x])?.into())
    }),
    rule("StaticRegexFullMatch", 0, |n| {
        let (x, pattern) = (n.input(0)?, n.required("pattern")?);
        Ok(n.emit(TextMatches { pattern }, &[x])?.into())
    }),
    rule("StaticRegexReplace", 0, |n| {
        let (pattern, rewrite) = (n.required("pattern")?, n.required("rewrite")?);
        let (x, all) = (n.input(0)?, n.attr("replace_global", true)?);
        Ok(n.emit(TextReplace { pattern, rewrite, all }, &[x])?.into())
    }),
    rule("StringJoin", 0, string_join),
    rule("StringLength", 0, |n| {
        let unit = unit(n)?;
        let x = n.input(0)?;
        Ok(n.emit(TextLength { unit }, &[x])?.into())
    }),
    rule("StringLower", 0, |n| map(n, TextAction::LowerAscii, TextAction::Lower)),
    rule("StringNGrams", 0, string_ngrams),
    rule("StringSplit", 0, |n| {
        let skip_empty: bool = n.attr("skip_empty", true)?;
        let (x, separator) = (n.input(0)?, n.input(1)?);
        pieces(n, x, separator, TextPieces { cut_at: CutAt::AnyByte, skip_empty, max_splits: -1 })
    }),
    rule("StringSplitV2", 0, |n| {
        let max_splits: i64 = n.attr("maxsplit", -1)?;
        let (x, separator) = (n.input(0)?, n.input(1)?);
        pieces(n, x, separator, TextPieces { cut_at: CutAt::Text, skip_empty: false, max_splits })
    }),
    rule("StringStrip", 0, |n| {
        let x = n.input(0)?;
        Ok(n.emit(TextMap { action: TextAction::Strip }, &[x])?.into())
    }),
    rule("StringToHashBucketFast", 0, |n| {
        let (x, buckets) = (n.input(0)?, n.required("num_buckets")?);
        Ok(n.emit(TextHash { buckets }, &[x])?.into())
    }),
    rule("StringToNumber", 0, |n| {
        let (x, destination_type) = (n.input(0)?, element_type(n, "out_type", ElementType::F32)?);
        Ok(n.emit(ConvertText { destination_type }, &[x])?.into())
    }),
    rule("StringUpper", 0, |n| map(n, TextAction::UpperAscii, TextAction::Upper)),
    rule("Substr", 0, |n| {
        let unit = unit(n)?;
        let (x, start, length) = (n.input(0)?, n.input(1)?, n.input(2)?);
        Ok(n.emit(TextPart { unit }, &[x, start, length])?.into())
    }),
    rule("RaggedTensorToSparse", 0, ragged_to_sparse),
    rule("RaggedTensorToTensor", 0, ragged_to_tensor),
];

// A text that is an input and must be a constant.
fn text_input(n: &mut NodeCx<'_>, input: usize, what: &str) -> Result<String> {
    let v = n.input(input)?;
    let text = n.tensor(v).and_then(|t| t.strings().ok()?.first().cloned());
    text.ok_or_else(|| n.unsupported(format!("{what} must be known when the model is read")))
}

fn unit(n: &NodeCx<'_>) -> Result<TextUnit> {
    match n.attr("unit", "BYTE".to_string())?.as_str() {
        "BYTE" => Ok(TextUnit::Byte),
        "UTF8_CHAR" => Ok(TextUnit::Letter),
        other => Err(n.unsupported(format!("attribute `unit` is `{other}`; known are BYTE, UTF8_CHAR"))),
    }
}

fn map(n: &mut NodeCx<'_>, ascii: TextAction, all: TextAction) -> Result<Outputs> {
    let encoding: String = n.attr("encoding", String::new())?;
    let action = match encoding.as_str() {
        "" => ascii,
        "utf-8" => all,
        other => return Err(n.unsupported(format!("attribute `encoding` is `{other}`; known are none and utf-8"))),
    };
    let x = n.input(0)?;
    Ok(n.emit(TextMap { action }, &[x])?.into())
}

// Digits as they are; widths and precisions are for files that people read.
fn as_string(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let plain = (n.attr("precision", -1i64)?, n.attr("width", -1i64)?) == (-1, -1)
        && !n.attr("scientific", false)?
        && !n.attr("shortest", false)?
        && n.attr("fill", String::new())?.is_empty();
    match n.ty(x) {
        ElementType::String => Ok(x.into()),
        ElementType::Boolean if plain => {
            let words = n.constant(Tensor::from_strings(&[2], vec!["false".into(), "true".into()])?)?;
            let at = n.convert(x, ElementType::I64)?;
            Ok(n.gather(words, at, 0)?.into())
        }
        ty if plain && ty.is_integer() => {
            Ok(n.emit(ConvertText { destination_type: ElementType::String }, &[x])?.into())
        }
        ty => Err(n.unsupported(format!("{ty} cannot be written with these digits; integers and booleans can"))),
    }
}

fn string_join(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let separator: String = n.attr("separator", String::new())?;
    let inputs = n.inputs()?;
    let Some((&first, rest)) = inputs.split_first() else { return Err(n.fail("at least one input is needed")) };
    let between = match separator.is_empty() {
        true => None,
        false => Some(n.constant(Tensor::from_strings(&[], vec![separator])?)?),
    };
    let mut all = first;
    for &next in rest {
        if let Some(between) = between {
            all = n.emit(TextConcat, &[all, between])?;
        }
        all = n.emit(TextConcat, &[all, next])?;
    }
    Ok(all.into())
}

fn pieces(n: &mut NodeCx<'_>, x: Value, separator: Value, op: TextPieces) -> Result<Outputs> {
    let separator = scalar(n, separator)?;
    Ok(n.emit_all(op, &[x, separator])?.into())
}

fn string_ngrams(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let op = TextNgrams {
        widths: n.required("ngram_widths")?,
        separator: n.attr("separator", String::new())?,
        left_pad: n.attr("left_pad", String::new())?,
        right_pad: n.attr("right_pad", String::new())?,
        pad_width: n.attr("pad_width", 0)?,
        preserve_short: n.attr("preserve_short_sequences", false)?,
    };
    let (x, splits) = (n.input(0)?, n.input(1)?);
    Ok(n.emit_all(op, &[x, splits])?.into())
}

/// The row of each value, from where rows end.
pub(super) fn rows_of(n: &mut NodeCx<'_>, splits: Value, count: Value) -> Result<Value> {
    // A value lies in as many rows less one as begin at or before it.
    let at = n.count_to(count, ElementType::I64)?;
    let (column, axis) = (n.unsqueeze(at, &[1])?, n.i64s(&[1])?);
    let begun = n.less_equal(splits, column)?;
    let begun = n.convert(begun, ElementType::I64)?;
    let rows = n.put(carafe_ops::reduce::ReduceSum { keep_dims: false }, &[begun, axis])?;
    n.plus_number(rows, -1.0)
}

// Indices, values and shape; only one level of rows.
fn ragged_to_sparse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let levels: i64 = n.attr("RAGGED_RANK", 1)?;
    if levels != 1 || n.n_inputs() != 2 {
        return Err(n.unsupported("rows of rows are not supported"));
    }
    let (splits, values) = (n.input(0)?, n.input(1)?);
    if n.known_rank(values)? != 1 {
        return Err(n.unsupported("rows of more than single values are not supported"));
    }
    let splits = i64_vector(n, splits)?;
    let count = n.length(values, 0)?;
    let rows = rows_of(n, splits, count)?;
    let (starts, at) = (n.gather(splits, rows, 0)?, n.count_to(count, ElementType::I64)?);
    let columns = n.minus(at, starts)?;
    let (row, column) = (n.unsqueeze(rows, &[1])?, n.unsqueeze(columns, &[1])?);
    let indices = n.concat(&[row, column], 1)?;
    let (n_rows, longest) = extent(n, splits)?;
    let shape = n.concat(&[n_rows, longest], 0)?;
    Ok(vec![indices, values, shape].into())
}

/// How many rows there are and how long the longest is, each an i64 vector of one.
pub(super) fn extent(n: &mut NodeCx<'_>, splits: Value) -> Result<(Value, Value)> {
    let (starts, stops) = (n.part(splits, 0, -1, 0)?, n.part(splits, 1, i64::MAX, 0)?);
    let lengths = n.minus(stops, starts)?;
    let none = n.i64s(&[0])?;
    let lengths = n.concat(&[none, lengths], 0)?;
    Ok((n.size(starts, 0)?, n.max_over(lengths, &[0], true)?))
}

// Rows filled up with a default value, or cut, to one length.
fn ragged_to_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let kinds: Vec<String> = n.required("row_partition_types")?;
    let (shape, values, default) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (rows, n_rows) = match kinds.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ROW_SPLITS"] => {
            let splits = n.input(3)?;
            let splits = i64_vector(n, splits)?;
            let count = n.length(values, 0)?;
            (rows_of(n, splits, count)?, extent(n, splits)?.0)
        }
        ["FIRST_DIM_SIZE", "VALUE_ROWIDS"] => {
            let (n_rows, rows) = (n.input(3)?, n.input(4)?);
            (i64_vector(n, rows)?, i64_vector(n, n_rows)?)
        }
        _ => return Err(n.unsupported(format!("rows of the kinds {kinds:?} are not supported"))),
    };
    // The column of a value is how many of its row stand before it: rows follow each other.
    let count = n.length(values, 0)?;
    let at = n.count_to(count, ElementType::I64)?;
    let one_for_each = n.shape_of(rows)?;
    let (zero, one) = (n.i64(0)?, n.i64(1)?);
    let ones = n.stretch(one, one_for_each)?;
    let lengths = super::common::segments::unsorted(n, ones, rows, n_rows, super::common::segments::Fold::Sum)?;
    let starts = n.put(carafe_ops::search::CumSum { exclusive: true, reverse: false }, &[lengths, zero])?;
    let start = n.gather(starts, rows, 0)?;
    let columns = n.minus(at, start)?;
    let none = n.i64s(&[0])?;
    let lengths = n.concat(&[none, lengths], 0)?;
    let longest = n.max_over(lengths, &[0], true)?;
    // A size of the shape that is negative, or no shape at all, is what the rows need.
    let value_shape = n.shape_of(values)?;
    let rest = n.part(value_shape, 1, i64::MAX, 0)?;
    let needed = n.concat(&[n_rows, longest, rest], 0)?;
    let whole = match n.rank(shape) {
        Some(0) => needed,
        _ => {
            let shape = i64_vector(n, shape)?;
            let open = n.less(shape, zero)?;
            n.choose(open, needed, shape)?
        }
    };
    // What does not fit is left out.
    let (first, second) = (n.i64(0)?, n.i64(1)?);
    let (height, width) = (n.gather(whole, first, 0)?, n.gather(whole, second, 0)?);
    let (row_fits, column_fits) = (n.less(rows, height)?, n.less(columns, width)?);
    let fits = n.and(row_fits, column_fits)?;
    let kept = places_of_true(n, fits)?;
    let (rows, columns, values) = (n.gather(rows, kept, 0)?, n.gather(columns, kept, 0)?, n.gather(values, kept, 0)?);
    let (row, column) = (n.unsqueeze(rows, &[1])?, n.unsqueeze(columns, &[1])?);
    let indices = n.concat(&[row, column], 1)?;
    let start = filled(n, default, whole)?;
    let op = carafe_ops::indexing::ScatterNDUpdate { reduction: carafe_ops::indexing::Reduction::None };
    Ok(n.emit(op, &[start, indices, values])?.into())
}
