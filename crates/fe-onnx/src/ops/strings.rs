//! Operations on texts, each an operation of our own: no opset works on strings.

use super::ml::floats;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::carafe::text_normalize::CaseChange;
use carafe_ops::carafe::{NgramCounts, TextConcat, TextMatches, TextNormalize, TextSplit};
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[
    rule("RegexFullMatch", 20, |n| {
        let pattern: String = n.attr("pattern", String::new())?;
        let x = n.input(0)?;
        Ok(n.emit(TextMatches { pattern }, &[x])?.into())
    }),
    rule("StringConcat", 20, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(TextConcat, &[a, b])?.into())
    }),
    rule("StringNormalizer", 10, string_normalizer),
    rule("StringSplit", 20, string_split),
    rule("TfIdfVectorizer", 9, tf_idf),
];

fn string_split(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let delimiter: String = n.attr("delimiter", String::new())?;
    let max_splits: i64 = n.attr("maxsplit", -1)?;
    let x = n.input(0)?;
    Ok(n.emit_all(TextSplit { delimiter, max_splits }, &[x])?.into())
}

fn string_normalizer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let case: String = n.attr("case_change_action", "NONE".to_string())?;
    let case_change = match case.as_str() {
        "NONE" => CaseChange::None,
        "LOWER" => CaseChange::Lower,
        "UPPER" => CaseChange::Upper,
        _ => return Err(n.fail(format!("case_change_action must be NONE, LOWER or UPPER, found `{case}`"))),
    };
    let case_sensitive = n.attr("is_case_sensitive", 0i64)? != 0;
    let stop: Vec<String> = n.attr("stopwords", vec![])?;
    n.ignore(&["locale"]);
    let mut inputs = vec![n.input(0)?];
    if !stop.is_empty() {
        inputs.push(n.constant(Tensor::from_strings(&[stop.len()], stop)?)?);
    }
    Ok(n.emit(TextNormalize { case_change, case_sensitive }, &inputs)?.into())
}

fn tf_idf(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mode: String = n.required("mode")?;
    let (ints, words): (Vec<i64>, Vec<String>) = (n.attr("pool_int64s", vec![])?, n.attr("pool_strings", vec![])?);
    let weights: Vec<f32> = n.attr("weights", vec![])?;
    let op = NgramCounts {
        starts: n.required("ngram_counts")?,
        columns: n.required("ngram_indexes")?,
        min_length: n.required("min_gram_length")?,
        max_length: n.required("max_gram_length")?,
        max_skips: n.required("max_skip_count")?,
    };
    let columns = op.columns.clone();
    let x = n.input(0)?;
    let pool = match words.is_empty() {
        true => n.i64s(&ints)?,
        false => n.constant(Tensor::from_strings(&[words.len()], words)?)?,
    };
    let counts = n.emit(op, &[x, pool])?;
    let found = match mode.as_str() {
        "TF" => return Ok(counts.into()),
        "TFIDF" => counts,
        "IDF" => {
            let zero = n.number(counts, 0.0)?;
            let there = n.greater(counts, zero)?;
            n.convert_like(there, counts)?
        }
        _ => return Err(n.fail(format!("mode must be TF, IDF or TFIDF, found `{mode}`"))),
    };
    if weights.is_empty() {
        return Ok(found.into());
    }
    if weights.len() != columns.len() {
        return Err(n.fail(format!("{} weights and {} columns do not match", weights.len(), columns.len())));
    }
    // Weights are listed like the sequences, not like the columns.
    let width = columns.iter().filter_map(|&c| usize::try_from(c).ok()).max().map_or(0, |c| c + 1);
    if width > 1 << 28 {
        return Err(n.unsupported(format!("{width} columns are too many")));
    }
    let mut by_column = vec![1.0; width];
    for (&column, &weight) in columns.iter().zip(&weights) {
        if let Some(slot) = usize::try_from(column).ok().and_then(|c| by_column.get_mut(c)) {
            *slot = weight;
        }
    }
    let by_column = floats(n, &[width], &by_column)?;
    Ok(n.times(found, by_column)?.into())
}
