//! StringTensorPack: cuts strings out of one row of bytes. The bytes of each string must be UTF-8.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};

/// Strings from where each begins and ends.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "begins, ends, symbols")]
pub struct StringTensorPack;

impl Op for StringTensorPack {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1])?;
        cx.require(matches!(ty, ElementType::I32 | ElementType::I64 | ElementType::Dynamic), || {
            format!("begins and ends must be i32 or i64, found {ty}")
        })?;
        let bytes = cx.ty(2);
        cx.require(matches!(bytes, ElementType::U8 | ElementType::Dynamic), || {
            format!("symbols must be u8, found {bytes}")
        })?;
        cx.require_rank(2, &[1])?;
        let shape = cx.shape(0).merge(cx.shape(1)).ok_or_else(|| {
            cx.fail(format!("begins and ends must have one shape, found [{}] and [{}]", cx.shape(0), cx.shape(1)))
        })?;
        cx.set(0, ElementType::String, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (begins, ends, symbols) = (cx.get::<i64>(0)?, cx.get::<i64>(1)?, cx.get::<u8>(2)?);
        let cut = |(&begin, &end): (&i64, &i64)| {
            let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
            let bytes = range.and_then(|(b, e)| symbols.get(b..e)).ok_or_else(|| {
                cx.fail(format!("a string from {begin} to {end} is outside of {} bytes", symbols.len()))
            })?;
            let text = std::str::from_utf8(bytes);
            text.map(str::to_owned).map_err(|_| cx.fail(format!("the bytes from {begin} to {end} are not UTF-8")))
        };
        let strings = begins.iter().zip(ends.iter()).map(cut).collect::<Result<Vec<String>>>()?;
        let out = Tensor::from_strings(&cx.out_shape(0)?, strings)?;
        cx.set(0, out)
    }
}
