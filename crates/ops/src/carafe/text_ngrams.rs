//! TextNgrams: neighbouring texts of each row joined, for several numbers of neighbours. Rows are given by where they end:
//! row `i` is `splits[i]..splits[i + 1]`.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor, bytes_of_text, text_of_bytes};

/// The n-grams of every row, and where the rows of them end.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, splits", outputs = "ngrams, splits")]
pub struct TextNgrams {
    /// How many texts are joined; n-grams of a row come in the order of these.
    pub widths: Vec<i64>,
    /// What stands between joined texts.
    #[attr(default = String::new())]
    pub separator: String,
    /// What stands before the first text of a row.
    #[attr(default = String::new())]
    pub left_pad: String,
    /// What stands behind the last text of a row.
    #[attr(default = String::new())]
    pub right_pad: String,
    /// How many pads there are on either side, at most one less than texts are joined; negative is that many.
    #[attr(default = 0)]
    pub pad_width: i64,
    /// A row that is too short for any n-gram gives one of all its texts.
    #[attr(default = false)]
    pub preserve_short: bool,
}

impl Op for TextNgrams {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.require_rank(0, &[1])?;
        cx.require_integer(1)?;
        cx.require_rank(1, &[1])?;
        cx.require(self.widths.iter().all(|w| *w > 0), || format!("widths must be positive, found {:?}", self.widths))?;
        cx.set(0, ElementType::String, PartialShape::new([Dim::ANY]));
        cx.set(1, cx.ty(1), PartialShape::new([cx.dim(1, 0)]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let texts = cx.input(0).strings()?;
        let splits = cx.ints(1)?;
        let sound = splits.windows(2).all(|w| w[0] <= w[1])
            && splits.first().is_none_or(|s| *s == 0)
            && splits.last().is_none_or(|s| usize::try_from(*s) == Ok(texts.len()));
        if !sound {
            return Err(cx.fail(format!("rows {splits:?} do not fit {} texts", texts.len())));
        }
        let (mut ngrams, mut ends) = (vec![], vec![0i64; splits.len().min(1)]);
        for row in splits.windows(2) {
            let row = &texts[row[0] as usize..row[1] as usize];
            let before = ngrams.len();
            for &width in &self.widths {
                let width = usize::try_from(width).unwrap_or(1);
                let pads = usize::try_from(self.pad_width).unwrap_or(usize::MAX).min(width - 1);
                self.join(row, width, pads, &mut ngrams);
            }
            if self.preserve_short && ngrams.len() == before && !row.is_empty() {
                let pads = usize::try_from(self.pad_width).unwrap_or(0);
                self.join(row, row.len() + 2 * pads, pads, &mut ngrams);
            }
            ends.push(ngrams.len() as i64);
        }
        let (count, rows) = (ngrams.len(), ends.len());
        let ty = cx.ty(1);
        cx.set(0, Tensor::from_strings(&[count], ngrams)?)?;
        cx.set(1, Tensor::from_numbers(ty, &[rows], ends)?)
    }
}

impl TextNgrams {
    // Every `width` neighbours of a row with this many pads on either side.
    fn join(&self, row: &[String], width: usize, pads: usize, into: &mut Vec<String>) {
        let text = |i: usize| match i.checked_sub(pads) {
            None => &self.left_pad,
            Some(i) => row.get(i).unwrap_or(&self.right_pad),
        };
        for first in 0..(row.len() + 2 * pads + 1).saturating_sub(width) {
            let mut bytes = vec![];
            for i in first..first + width {
                if i > first {
                    bytes.extend(bytes_of_text(&self.separator));
                }
                bytes.extend(bytes_of_text(text(i)));
            }
            into.push(text_of_bytes(&bytes));
        }
    }
}
