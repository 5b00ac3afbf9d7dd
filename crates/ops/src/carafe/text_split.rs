//! TextSplit: texts cut at a delimiter. All rows become as long as the longest, filled up with empty texts; the second
//! output tells how many parts each text really had.

use super::text::require_text;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

/// The parts of every text along a new last axis, and their number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", outputs = "parts, counts")]
pub struct TextSplit {
    /// Where to cut; an empty one cuts at runs of white space and drops those at both ends.
    #[attr(default = String::new())]
    pub delimiter: String,
    /// The most cuts that are made; the rest stays in the last part. Negative is no bound.
    #[attr(default = -1)]
    pub max_splits: i64,
}

impl Op for TextSplit {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        let parts = match cx.shape(0).dims() {
            Some(dims) => PartialShape::new(dims.iter().copied().chain([Dim::ANY])),
            None => PartialShape::dynamic(),
        };
        cx.set(0, ElementType::String, parts);
        cx.set(1, ElementType::I64, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let rows: Vec<Vec<String>> = cx.input(0).strings()?.iter().map(|text| self.parts(text)).collect();
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let shape = cx.shape(0).to_vec();
        let counts: Vec<i64> = rows.iter().map(|row| row.len() as i64).collect();
        let whole = [&shape[..], &[longest]].concat();
        let mut all = filled(&whole, String::new())?;
        for (slots, row) in all.chunks_exact_mut(longest.max(1)).zip(rows) {
            slots.iter_mut().zip(row).for_each(|(slot, part)| *slot = part);
        }
        cx.set(0, Tensor::from_strings(&whole, all)?)?;
        cx.put(1, &shape, counts)
    }
}

impl TextSplit {
    fn parts(&self, text: &str) -> Vec<String> {
        let most = usize::try_from(self.max_splits).map_or(usize::MAX, |n| n.saturating_add(1));
        if text.is_empty() {
            return vec![];
        }
        if !self.delimiter.is_empty() {
            return text.splitn(most, &self.delimiter).map(String::from).collect();
        }
        let mut parts = vec![];
        let mut rest = text.trim();
        while !rest.is_empty() {
            let cut = rest.find(char::is_whitespace).filter(|_| parts.len() + 1 < most);
            let (part, tail) = rest.split_at(cut.unwrap_or(rest.len()));
            parts.push(part.to_string());
            rest = tail.trim_start();
        }
        parts
    }
}
