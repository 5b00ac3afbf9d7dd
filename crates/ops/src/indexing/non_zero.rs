//! NonZero: where the elements that are not zero lie, one column of coordinates each, in row-major order. A scalar counts
//! as one element of a vector.

use crate::index::unravel;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Coordinates `[rank, count]` of all elements that are not zero.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3)]
pub struct NonZero {
    /// i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

impl Op for NonZero {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
            format!("attribute `output_type` must be i64 or i32, found {ty}")
        })?;
        if cx.ty(0) != ElementType::Boolean {
            cx.require_number(0)?;
        }
        let shape = match cx.shape(0).dims() {
            Some(dims) => {
                let most = dims.iter().fold(Dim::known(1), |p, &d| p.mul(d)).max();
                PartialShape::new([Dim::from(dims.len().max(1)), Dim::range(0, most)])
            }
            None => PartialShape::any_of_rank(2),
        };
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = if cx.shape(0).is_empty() { vec![1] } else { cx.shape(0).to_vec() };
        let flat = if cx.ty(0).is_float() {
            let x = cx.get::<f64>(0)?;
            positions(cx, shape.len(), x.len(), |i| x[i] != 0.0)?
        } else {
            let x = cx.get::<i64>(0)?;
            positions(cx, shape.len(), x.len(), |i| x[i] != 0)?
        };
        let n = flat.len();
        let mut coordinates = vec![0i64; shape.len() * n];
        for (column, &position) in flat.iter().enumerate() {
            for (axis, i) in unravel(position, &shape).into_iter().enumerate() {
                coordinates[axis * n + column] = i as i64;
            }
        }
        cx.put(0, &[shape.len(), n], coordinates)
    }
}

/// Where `is` holds. They are counted first: only then is it known how much memory they and their coordinates take.
fn positions(cx: &EvalCx<'_>, rank: usize, len: usize, is: impl Fn(usize) -> bool) -> Result<Vec<usize>> {
    let n = (0..len).filter(|&i| is(i)).count();
    cx.ensure_memory(n, (1 + 2 * rank) * size_of::<i64>())?;
    let mut found = Vec::with_capacity(n);
    found.extend((0..len).filter(|&i| is(i)));
    Ok(found)
}
