//! MatMul: batched matrix product. Transposition does not apply to a vector, which is a row on the left and a column on
//! the right and leaves no dimension behind.

use super::product::{Factor, Rows, add_product, add_product_of_rows, is_factor, transposed, with_factor, zeros};
use crate::index::{broadcast_strides, offsets};
use crate::cost::product;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, RowKind, Fact};
use carafe_tensor::{Dim, PartialShape};

/// Product of matrices in the last two dimensions; the dimensions before them broadcast as in numpy.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "a, b", heavy, channel = "-1")]
pub struct MatMul {
    /// Swap the last two dimensions of the first input.
    #[attr(default = false)]
    pub transpose_a: bool,
    /// Swap the last two dimensions of the second input.
    #[attr(default = false)]
    pub transpose_b: bool,
}

impl Op for MatMul {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1])?;
        cx.require(is_factor(ty), || format!("inputs must be numeric, found {ty}"))?;
        let (Some(a), Some(b)) = (cx.shape(0).dims(), cx.shape(1).dims()) else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        for (i, dims) in [a, b].iter().enumerate() {
            cx.require(!dims.is_empty(), || format!("{} must have at least rank 1, found a scalar", cx.port_name(i)))?;
        }
        let (batch_a, m, k_a) = matrix_dims(a, self.transpose_a, false);
        let (batch_b, k_b, n) = matrix_dims(b, self.transpose_b, true);
        cx.require(k_a.compatible(k_b), || {
            format!("[{}] has {k_a} columns to multiply, [{}] has {k_b} rows", cx.shape(0), cx.shape(1))
        })?;
        let batch = PartialShape::new(batch_a.iter().copied()).broadcast(&PartialShape::new(batch_b.iter().copied()));
        let Some(mut dims) = batch.and_then(|s| s.dims().map(<[Dim]>::to_vec)) else {
            return Err(cx.fail(format!("batches of [{}] and [{}] do not broadcast", cx.shape(0), cx.shape(1))));
        };
        dims.extend((a.len() > 1).then_some(m));
        dims.extend((b.len() > 1).then_some(n));
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_factor!(cx.ty(0), T => self.multiply::<T>(cx))
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        let (a, b) = (cx.rank(0), cx.rank(1));
        let kept = match (cx.kinds()[0], cx.kinds()[1]) {
            (RowKind::Rows, RowKind::Fixed) => a >= b && (a >= 3 || (a == 2 && !self.transpose_a)),
            (RowKind::Fixed, RowKind::Rows) => b >= 3 && a <= b,
            (RowKind::Rows, RowKind::Rows) => a >= 3 && a == b,
            _ => false,
        };
        if kept { Ok(()) } else { Err("it sums over rows, or pairs them".into()) }
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        let a = inputs.first()?.shape.to_static()?;
        let k = match a[..] {
            [] => 1,
            [n] => n,
            [.., m, _] if self.transpose_a => m,
            [.., n] => n,
        };
        outputs[0].shape.to_static().and_then(|s| product(&s))?.checked_mul(k as u64)
    }
}

/// Rows between two looks at whether the inference was cancelled.
const ROWS: usize = 32;

impl MatMul {
    fn multiply<T: Factor>(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (a, b) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
        let (batch_a, m, k) = matrix_dims(cx.shape(0), self.transpose_a, false);
        let (batch_b, _, n) = matrix_dims(cx.shape(1), self.transpose_b, true);
        let out_shape = cx.out_shape(0)?;
        let own = usize::from(cx.shape(0).len() > 1) + usize::from(cx.shape(1).len() > 1);
        let batch = &out_shape[..out_shape.len() - own];

        let mut out: Vec<T> = zeros(&out_shape)?;
        let mut sums: Vec<T::Sum> = zeros(&[m, n])?;
        if out.is_empty() {
            return cx.put(0, &out_shape, out);
        }
        let starts_a = offsets(batch, &broadcast_strides(batch_a, batch));
        let starts_b = offsets(batch, &broadcast_strides(batch_b, batch));
        for (out, (i, j)) in out.chunks_mut(m * n).zip(starts_a.zip(starts_b)) {
            let (a, b) = (&a[i * m * k..][..m * k], &b[j * k * n..][..k * n]);
            let swapped = (self.transpose_a && m > 1).then(|| transposed(a, k, m));
            let a = swapped.as_deref().unwrap_or(a);
            sums.fill(T::Sum::default());
            let by_rows = (self.transpose_b && cx.shape(1).len() > 1) || n == 1;
            for row in (0..m).step_by(ROWS) {
                cx.check_cancelled()?;
                let (a, sums, m) = (Rows::new(&a[row * k..], k), &mut sums[row * n..], ROWS.min(m - row));
                match by_rows {
                    true => add_product_of_rows(sums, a, Rows::new(b, k), m, k, n),
                    false => add_product(sums, a, Rows::new(b, n), m, k, n),
                }
            }
            for (y, &s) in out.iter_mut().zip(&sums) {
                *y = T::narrow(s);
            }
        }
        cx.put(0, &out_shape, out)
    }
}

/// Batch dimensions, rows and columns of an operand after transposition. A vector is one row, or one column when
/// `right`.
fn matrix_dims<D: Copy + From<usize>>(dims: &[D], transpose: bool, right: bool) -> (&[D], D, D) {
    match dims {
        [] => (dims, D::from(1), D::from(1)),
        &[n] => {
            let one = D::from(1);
            if right { (&[], n, one) } else { (&[], one, n) }
        }
        &[ref batch @ .., rows, columns] => {
            let (rows, columns) = if transpose { (columns, rows) } else { (rows, columns) };
            (batch, rows, columns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::{ErrorKind, EvalEnv, Fact, OpDecl};
    use carafe_tensor::{ElementType, Tensor};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_cancelled_evaluation_ends_without_a_result() {
        let op = MatMul { transpose_a: false, transpose_b: false };
        let tensor = Tensor::zeros(ElementType::F32, &[64, 64]).unwrap();
        for (cancelled, wanted) in [(false, None), (true, Some(ErrorKind::Cancelled))] {
            let mut env = EvalEnv::default();
            env.cancel = Some(Arc::new(AtomicBool::new(cancelled)));
            let facts = [Fact::of(&tensor)];
            let mut cx = EvalCx::new("node", op.info(), vec![tensor.clone(), tensor.clone()], &facts, &mut env);
            assert_eq!(op.eval(&mut cx).err().map(|e| e.kind()), wanted);
        }
    }
}
