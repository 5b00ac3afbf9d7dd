//! TextIndex: where texts stand in a list. Texts are compared byte for byte, as they are.

use super::text::require_text;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;
use std::collections::HashMap;

/// Index of every text of `data` in the vector `table`, the last of equal entries; -1 where it is not listed.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, table")]
pub struct TextIndex;

impl Op for TextIndex {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        require_text(cx, 1)?;
        cx.require_rank(1, &[1])?;
        cx.set(0, ElementType::I64, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let table = cx.input(1).strings()?;
        let positions: HashMap<&str, i64> = table.iter().zip(0i64..).map(|(text, i)| (text.as_str(), i)).collect();
        let found: Vec<i64> =
            cx.input(0).strings()?.iter().map(|text| positions.get(text.as_str()).copied().unwrap_or(-1)).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, found)
    }
}
