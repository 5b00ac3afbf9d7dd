//! TextPart: a part of every text, and how long a text is; both count either bytes or letters.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor, bytes_of_text, text_of_bytes};

carafe_graph::attr_enum! {
    /// What is counted.
    pub enum TextUnit {
        /// Bytes of UTF-8.
        Byte = "byte",
        /// Letters of Unicode.
        Letter = "letter",
    }
}

/// Of every text the part from `start` on, at most `length` long; a negative start counts from the end. Both are one number,
/// or one for each text.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, start, length")]
pub struct TextPart {
    /// What is counted.
    #[attr(default = TextUnit::Byte)]
    pub unit: TextUnit,
}

impl Op for TextPart {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        for input in [1, 2] {
            cx.require_integer(input)?;
            let fits = cx.rank(input) == Some(0) || cx.shape(input).merge(cx.shape(0)).is_some();
            cx.require(fits, || {
                format!("{} must be one number or have the shape [{}]", cx.port_name(input), cx.shape(0))
            })?;
        }
        cx.set(0, ElementType::String, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (starts, lengths) = (cx.ints(1)?, cx.ints(2)?);
        let mut parts = vec![];
        for (i, text) in cx.input(0).strings()?.iter().enumerate() {
            let of = |list: &[i64]| list.get(if list.len() == 1 { 0 } else { i }).copied().unwrap_or(0);
            let size = length(text, self.unit);
            let start = if of(&starts) < 0 { size.saturating_add(of(&starts)) } else { of(&starts) };
            if !(0..=size).contains(&start) {
                return Err(cx.fail(format!("position {} is outside of text {i}, which is {size} long", of(&starts))));
            }
            let (start, most) = (start as usize, usize::try_from(of(&lengths)).unwrap_or(0));
            parts.push(match self.unit {
                TextUnit::Letter => text.chars().skip(start).take(most).collect(),
                TextUnit::Byte => {
                    text_of_bytes(&bytes_of_text(text).into_iter().skip(start).take(most).collect::<Vec<u8>>())
                }
            });
        }
        let shape = cx.shape(0).to_vec();
        cx.set(0, Tensor::from_strings(&shape, parts)?)
    }
}

fn length(text: &str, unit: TextUnit) -> i64 {
    match unit {
        TextUnit::Byte => bytes_of_text(text).len() as i64,
        TextUnit::Letter => text.chars().count() as i64,
    }
}

/// How long every text is.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct TextLength {
    /// What is counted.
    #[attr(default = TextUnit::Byte)]
    pub unit: TextUnit,
}

impl Op for TextLength {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.set(0, ElementType::I32, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let found: Vec<i32> = cx.input(0).strings()?.iter().map(|text| length(text, self.unit) as i32).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, found)
    }
}
