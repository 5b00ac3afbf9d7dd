//! StringTensorUnpack: all strings joined into one row of bytes, with where each begins and ends.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Strings as bytes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, outputs = "begins, ends, symbols")]
pub struct StringTensorUnpack;

impl Op for StringTensorUnpack {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        cx.require(matches!(ty, ElementType::String | ElementType::Dynamic), || {
            format!("data must be a string tensor, found {ty}")
        })?;
        for output in 0..2 {
            cx.set(output, ElementType::I32, cx.shape(0).clone());
        }
        cx.set(2, ElementType::U8, PartialShape::new([Dim::ANY]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let strings = cx.input(0).strings()?;
        let (mut begins, mut ends) = (Vec::with_capacity(strings.len()), Vec::with_capacity(strings.len()));
        let mut symbols: Vec<u8> = Vec::new();
        for text in strings {
            begins.push(symbols.len() as i64);
            symbols.extend(text.as_bytes());
            ends.push(symbols.len() as i64);
        }
        if symbols.len() > i32::MAX as usize {
            return Err(cx.fail(format!("{} bytes of text are more than an i32 can count", symbols.len())));
        }
        let n = symbols.len();
        cx.put(0, &shape, begins)?;
        cx.put(1, &shape, ends)?;
        cx.put(2, &[n], symbols)
    }
}
