//! Bucketize: between which boundaries each element lies. Data and boundaries may have different types; integers are
//! compared exactly.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::ElementType;

/// Number of the bucket each element falls into; boundaries rise.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "data, buckets")]
pub struct Bucketize {
    /// i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
    /// A bucket contains its right boundary, otherwise its left one.
    #[attr(default = true)]
    pub with_right_bound: bool,
}

impl Op for Bucketize {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
            format!("attribute `output_type` must be i64 or i32, found {ty}")
        })?;
        cx.require_number(0)?;
        cx.require_number(1)?;
        cx.require_rank(1, &[1])?;
        cx.set(0, ty, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let buckets = if cx.ty(0).is_float() || cx.ty(1).is_float() {
            self.positions(&cx.get::<f64>(0)?, &cx.get::<f64>(1)?)
        } else {
            self.positions(&integers(cx, 0)?, &integers(cx, 1)?)
        };
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, buckets)
    }
}

impl Bucketize {
    fn positions<T: PartialOrd>(&self, data: &[T], bounds: &[T]) -> Vec<i64> {
        let below = |x: &T| match self.with_right_bound {
            true => bounds.partition_point(|b| b < x),
            false => bounds.partition_point(|b| b <= x),
        };
        data.iter().map(|x| below(x) as i64).collect()
    }
}

fn integers(cx: &EvalCx<'_>, input: usize) -> Result<Vec<i128>> {
    Ok(match cx.ty(input) {
        ElementType::U64 => cx.get::<u64>(input)?.iter().map(|&x| x.into()).collect(),
        _ => cx.get::<i64>(input)?.iter().map(|&x| x.into()).collect(),
    })
}
