//! TextPieces: texts cut into pieces, as a sparse matrix of one row for each text: the indices of the pieces, the pieces, and
//! the number of texts with the largest number of pieces. Texts are cut as bytes.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor, bytes_of_text, text_of_bytes};

carafe_graph::attr_enum! {
    /// What a separator is.
    pub enum CutAt {
        /// The whole text; runs of white space where it is empty.
        Text = "text",
        /// Any byte of the text; where it is empty every byte is a piece. An empty text has no pieces.
        AnyByte = "any_byte",
    }
}

/// The pieces of every text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, separator", outputs = "indices, pieces, shape")]
pub struct TextPieces {
    /// What a separator is.
    #[attr(default = CutAt::Text)]
    pub cut_at: CutAt,
    /// Leave out empty pieces.
    #[attr(default = false)]
    pub skip_empty: bool,
    /// The most cuts of a text; the rest stays in the last piece. Negative is no bound.
    #[attr(default = -1)]
    pub max_splits: i64,
}

impl Op for TextPieces {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        require_text(cx, 1)?;
        cx.require_rank(0, &[1])?;
        cx.require_rank(1, &[0])?;
        cx.set(0, ElementType::I64, PartialShape::new([Dim::ANY, Dim::known(2)]));
        cx.set(1, ElementType::String, PartialShape::new([Dim::ANY]));
        cx.set(2, ElementType::I64, PartialShape::new([Dim::known(2)]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let texts = cx.input(0).strings()?;
        let separator = bytes_of_text(cx.input(1).strings()?.first().map_or("", String::as_str));
        let (mut indices, mut pieces, mut longest) = (vec![], vec![], 0);
        for (row, text) in texts.iter().enumerate() {
            let bytes = bytes_of_text(text);
            let mut cut = self.cut(&bytes, &separator);
            if self.skip_empty {
                cut.retain(|piece| !piece.is_empty());
            }
            longest = longest.max(cut.len());
            for (column, piece) in cut.into_iter().enumerate() {
                indices.extend([row as i64, column as i64]);
                pieces.push(text_of_bytes(piece));
            }
        }
        let (rows, count) = (texts.len() as i64, pieces.len());
        cx.put(0, &[count, 2], indices)?;
        cx.set(1, Tensor::from_strings(&[count], pieces)?)?;
        cx.put(2, &[2], vec![rows, longest as i64])
    }
}

impl TextPieces {
    fn cut<'t>(&self, text: &'t [u8], separator: &[u8]) -> Vec<&'t [u8]> {
        let most = usize::try_from(self.max_splits).unwrap_or(usize::MAX);
        match (self.cut_at, separator.is_empty()) {
            (CutAt::AnyByte, _) if text.is_empty() => vec![],
            (CutAt::AnyByte, true) => text.chunks(1).collect(),
            (CutAt::AnyByte, false) => text.splitn(most.saturating_add(1), |b| separator.contains(b)).collect(),
            (CutAt::Text, true) => words(text, most),
            (CutAt::Text, false) => at_text(text, separator, most),
        }
    }
}

fn at_text<'t>(mut text: &'t [u8], separator: &[u8], most: usize) -> Vec<&'t [u8]> {
    let mut pieces = vec![];
    while pieces.len() < most {
        let Some(at) = text.windows(separator.len()).position(|w| w == separator) else { break };
        pieces.push(&text[..at]);
        text = &text[at + separator.len()..];
    }
    pieces.push(text);
    pieces
}

// Between runs of white space. Behind the last cut that is allowed comes what is left, even if that is nothing.
fn words(text: &[u8], most: usize) -> Vec<&[u8]> {
    if most == 0 {
        return vec![text];
    }
    let space = |b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
    let trimmed = |text: &'_ [u8]| text.iter().position(|b| !space(b)).unwrap_or(text.len());
    let mut pieces = vec![];
    let mut rest = &text[trimmed(text)..];
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.iter().position(space).unwrap_or(rest.len()));
        pieces.push(piece);
        rest = &tail[trimmed(tail)..];
        if pieces.len() == most {
            pieces.push(rest);
            break;
        }
    }
    pieces
}
