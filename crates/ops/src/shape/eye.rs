//! Eye: matrices with ones on one diagonal and zeros elsewhere. A positive diagonal index lies above the main diagonal.

use crate::buffer::filled;
use crate::movement::axes::{of_rank, require_one};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// A diagonal of ones, repeated over the batch shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, inputs = "num_rows, num_columns, diagonal_index, batch_shape?", shape_inputs = "0, 1, 2, 3")]
pub struct Eye {
    /// Type of the matrices.
    pub output_type: ElementType,
}

impl Op for Eye {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(ty.is_float() || ty.is_integer() || ty == ElementType::Boolean, || {
            format!("attribute `output_type` must be numeric, found {ty}")
        })?;
        for i in 0..3 {
            require_one(cx, i)?;
        }
        let batch = if cx.has(3) {
            cx.require_integer(3)?;
            cx.require_rank(3, &[1])?;
            match cx.dims_value(3) {
                Some(dims) => PartialShape::new(dims),
                None => of_rank(cx.dim(3, 0)),
            }
        } else {
            PartialShape::scalar()
        };
        let shape = match batch.dims() {
            Some(batch) => {
                let mut dims = batch.to_vec();
                for i in 0..2 {
                    dims.push(cx.dims_value(i).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY));
                }
                let negative = dims.iter().find(|d| d.max().is_some_and(|m| m < 0));
                cx.require(negative.is_none(), || format!("sizes must not be negative, found {dims:?}"))?;
                PartialShape::new(dims.into_iter().map(Dim::clamp_shape))
            }
            None => PartialShape::dynamic(),
        };
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let shift = cx.int(2)?;
        let mut matrices = filled(&shape, 0u8)?;
        if rows > 0 && columns > 0 {
            for matrix in matrices.chunks_mut(rows * columns) {
                for row in 0..rows {
                    let column = (row as i64).checked_add(shift).and_then(|c| usize::try_from(c).ok());
                    if let Some(c) = column.filter(|&c| c < columns) {
                        matrix[row * columns + c] = 1;
                    }
                }
            }
        }
        cx.put(0, &shape, matrices)
    }
}
