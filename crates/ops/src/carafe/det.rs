//! Det: the determinant of each square matrix of the last two axes. A matrix of no rows has determinant 1.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Determinant.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe")]
pub struct Det;

impl Op for Det {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        let shape = match cx.shape(0).dims() {
            Some([batch @ .., rows, columns]) => {
                cx.require(Dim::compatible(*rows, *columns), || {
                    format!("matrices must be square, found {rows} rows and {columns} columns")
                })?;
                PartialShape::new(batch.iter().copied())
            }
            Some(_) => return Err(cx.fail(format!("data must have at least 2 axes, found [{}]", cx.shape(0)))),
            None => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [batch @ .., rows, columns] = cx.shape(0) else { return Err(cx.fail("data must have at least 2 axes")) };
        let (batch, n) = (batch.to_vec(), *rows);
        if n != *columns {
            return Err(cx.fail(format!("matrices must be square, found {n} rows and {columns} columns")));
        }
        let out: Vec<f64> = match n * n {
            0 => vec![1.0; carafe_tensor::elements(&batch).unwrap_or(0)],
            size => cx.get::<f64>(0)?.to_vec().chunks_exact_mut(size).map(|m| determinant(m, n)).collect(),
        };
        cx.put(0, &batch, out)
    }
}

/// Elimination with the largest pivot of each column; the matrix is used up.
fn determinant(m: &mut [f64], n: usize) -> f64 {
    let mut product = 1.0;
    for k in 0..n {
        let best = (k..n).max_by(|&a, &b| m[a * n + k].abs().total_cmp(&m[b * n + k].abs())).unwrap_or(k);
        let pivot = m[best * n + k];
        if pivot == 0.0 {
            return 0.0;
        }
        if best != k {
            for j in 0..n {
                m.swap(k * n + j, best * n + j);
            }
            product = -product;
        }
        product *= pivot;
        for i in k + 1..n {
            let factor = m[i * n + k] / pivot;
            for j in k..n {
                m[i * n + j] -= factor * m[k * n + j];
            }
        }
    }
    product
}
