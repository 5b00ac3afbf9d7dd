//! TextConcat: texts put together pair by pair, with numpy broadcasting.

use super::text::require_text;
use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};

/// Every text of `a` followed by its partner of `b`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "a, b")]
pub struct TextConcat;

impl Op for TextConcat {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_text(cx, 0)?;
        require_text(cx, 1)?;
        let shape = cx.broadcast(0, 1)?;
        cx.set(0, ElementType::String, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let (a, b) = (cx.input(0), cx.input(1));
        let (texts_a, texts_b) = (a.strings()?, b.strings()?);
        let position = |t: &Tensor| offsets(&shape, &broadcast_strides(t.shape(), &shape));
        let joined = position(a).zip(position(b)).map(|(i, j)| format!("{}{}", texts_a[i], texts_b[j])).collect();
        cx.set(0, Tensor::from_strings(&shape, joined)?)
    }
}
