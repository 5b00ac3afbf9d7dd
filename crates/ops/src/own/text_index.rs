//! TextIndex: where texts stand in a list. Texts are compared byte for byte, as they are.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;
use std::collections::HashMap;

/// Index of every text in `table`, the last of equal entries; -1 where it is not listed.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe")]
pub struct TextIndex {
    /// The texts that are known.
    pub table: Vec<String>,
}

impl Op for TextIndex {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        cx.require(matches!(ty, ElementType::String | ElementType::Dynamic), || {
            format!("data must be string, found {ty}")
        })?;
        cx.set(0, ElementType::I64, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let places: HashMap<&str, i64> = self.table.iter().zip(0i64..).map(|(text, i)| (text.as_str(), i)).collect();
        let found: Vec<i64> =
            cx.input(0).strings()?.iter().map(|text| places.get(text.as_str()).copied().unwrap_or(-1)).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, found)
    }
}
