//! TextNormalize: drops stop words, then changes case. When nothing is left the result is one empty text.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};
use std::collections::HashSet;

carafe_graph::attr_enum! {
    /// What happens to letters.
    pub enum CaseChange { None = "NONE", Lower = "LOWER", Upper = "UPPER" }
}

/// The texts of `[count]` or `[1, count]` that are no stop words.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, stop_words?")]
pub struct TextNormalize {
    /// Applied to what is left.
    #[attr(default = CaseChange::None)]
    pub case_change: CaseChange,
    /// Whether stop words are compared as they are written.
    #[attr(default = false)]
    pub case_sensitive: bool,
}

impl Op for TextNormalize {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        cx.require_rank(0, &[1, 2])?;
        if cx.has(1) {
            require_text(cx, 1)?;
        }
        let shape = match cx.rank(0) {
            Some(2) => {
                cx.require(cx.dim(0, 0).compatible(Dim::known(1)), || {
                    format!("data must be [count] or [1, count], found [{}]", cx.shape(0))
                })?;
                PartialShape::new([Dim::known(1), Dim::range(1, None)])
            }
            Some(_) => PartialShape::new([Dim::range(1, None)]),
            None => PartialShape::dynamic(),
        };
        cx.set(0, ElementType::String, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let form = |text: &str| if self.case_sensitive { text.to_string() } else { text.to_lowercase() };
        let stop: HashSet<String> = match cx.has(1) {
            true => cx.input(1).strings()?.iter().map(|s| form(s)).collect(),
            false => HashSet::new(),
        };
        let left = cx.input(0).strings()?.iter().filter(|s| !stop.contains(&form(s)));
        let mut texts: Vec<String> = left
            .map(|s| match self.case_change {
                CaseChange::None => s.clone(),
                CaseChange::Lower => s.to_lowercase(),
                CaseChange::Upper => s.to_uppercase(),
            })
            .collect();
        if texts.is_empty() {
            texts.push(String::new());
        }
        let shape = if cx.shape(0).len() == 2 { vec![1, texts.len()] } else { vec![texts.len()] };
        cx.set(0, Tensor::from_strings(&shape, texts)?)
    }
}
