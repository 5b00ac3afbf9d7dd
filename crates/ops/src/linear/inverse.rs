//! Inverse: Gauss-Jordan elimination with row exchange on the last two dimensions. A singular matrix gives infinities
//! and NaN, not an error.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PartialShape;

/// Inverse of square matrices.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 14)]
pub struct Inverse {
    /// Invert the transposed matrices.
    #[attr(default = false)]
    pub adjoint: bool,
}

impl Op for Inverse {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        let mut shape: PartialShape = cx.shape(0).clone();
        if let Some(dims) = shape.dims_mut() {
            let [.., rows, columns] = dims.as_mut_slice() else {
                return Err(cx.fail(format!("data must have at least rank 2, found [{}]", cx.shape(0))));
            };
            let side = rows
                .merge(*columns)
                .ok_or_else(|| cx.fail(format!("matrices must be square, found [{}]", cx.shape(0))))?;
            (*rows, *columns) = (side, side);
        }
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let n = shape.last().copied().unwrap_or(0);
        let mut data = cx.get::<f64>(0)?.into_owned();
        if !data.is_empty() {
            for matrix in data.chunks_exact_mut(n * n) {
                let inverse = inverse(matrix, n);
                for (i, y) in matrix.iter_mut().enumerate() {
                    *y = if self.adjoint { inverse[i % n * n + i / n] } else { inverse[i] };
                }
            }
        }
        cx.put(0, &shape, data)
    }
}

/// Destroys the matrix on the way.
fn inverse(matrix: &mut [f64], n: usize) -> Vec<f64> {
    let mut result = vec![0.0; n * n];
    for i in 0..n {
        result[i * n + i] = 1.0;
    }
    for column in 0..n {
        let mut pivot = column;
        for row in column + 1..n {
            if matrix[row * n + column].abs() > matrix[pivot * n + column].abs() {
                pivot = row;
            }
        }
        for j in 0..n {
            matrix.swap(pivot * n + j, column * n + j);
            result.swap(pivot * n + j, column * n + j);
        }
        let divisor = matrix[column * n + column];
        for j in 0..n {
            matrix[column * n + j] /= divisor;
            result[column * n + j] /= divisor;
        }
        for row in (0..n).filter(|&row| row != column) {
            let factor = matrix[row * n + column];
            for j in 0..n {
                matrix[row * n + j] -= factor * matrix[column * n + j];
                result[row * n + j] -= factor * result[column * n + j];
            }
        }
    }
    result
}
