//! Matrix products: with constant weights, which are packed once, and of two computed operands in whatever order of axes.

use super::ending::{Ending, bytes_of};
use super::product::{Left, Product, Right};
use super::{Built, Port, Site};
use crate::launch::{Arg, Launches};
use carafe_graph::Result;
use carafe_ops::linear::MatMul;
use carafe_plan::Layout;
use carafe_tensor::{Tensor, strides};

/// Rows of packed weights are multiples of so many elements.
const PADDED: usize = 8;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<MatMul>().filter(|_| !site.group) else { return Ok(None) };
    let [a, b] = &site.inputs[..2] else { return Ok(None) };
    if !(a.is_f32() && b.is_f32()) || a.rank() == 0 || b.rank() == 0 {
        return Ok(None);
    }
    let Some(product) = Operands::of(site, op, a, b) else { return Ok(None) };
    product.build(site)
}

/// An operand as matrices: sizes and strides of the batch, of rows and of columns.
struct Matrices {
    batch: Vec<usize>,
    steps: Vec<usize>,
    rows: [usize; 2],
    columns: [usize; 2],
}

impl Matrices {
    // A vector is one row.
    fn of(shape: &[usize], steps: &[usize], transposed: bool) -> Matrices {
        let at = shape.len().saturating_sub(2);
        let (rows, columns) = match shape.len() {
            1 => ([1, shape[0]], [shape[0], 1]),
            n => ([shape[n - 2], steps[n - 2]], [shape[n - 1], steps[n - 1]]),
        };
        let (rows, columns) = if transposed && shape.len() > 1 { (columns, rows) } else { (rows, columns) };
        Matrices { batch: shape[..at].to_vec(), steps: steps[..at].to_vec(), rows, columns }
    }
    fn swapped(self) -> Matrices {
        Matrices { rows: self.columns, columns: self.rows, ..self }
    }
    // Where each matrix begins, for all of a batch; a dimension of 1 is repeated.
    fn offsets(&self, batch: &[usize]) -> Vec<usize> {
        let ahead = batch.len() - self.batch.len();
        let place = |mut flat: usize| {
            let mut at = 0;
            for axis in (0..batch.len()).rev() {
                let i = flat % batch[axis];
                flat /= batch[axis];
                if axis >= ahead && self.batch[axis - ahead] != 1 {
                    at += i * self.steps[axis - ahead];
                }
            }
            at
        };
        (0..batch.iter().product()).map(place).collect()
    }
    // Whether rows lie densely, and the stride of the other axis; either way if it is one row or column.
    fn lies(&self) -> Option<(bool, usize)> {
        let ([rows, row_step], [columns, column_step]) = (self.rows, self.columns);
        if column_step == 1 || columns == 1 {
            // Elements of a single column are one row apart.
            Some((true, if rows == 1 { columns } else { row_step }))
        } else if row_step == 1 || rows == 1 {
            Some((false, if columns == 1 { rows } else { column_step }))
        } else {
            None
        }
    }
}

struct Operands<'a> {
    a: Matrices,
    b: Matrices,
    c: Matrices,
    /// What all matrices of the result have in common.
    batch: Vec<usize>,
    /// The right operand, when it is a constant.
    weights: Option<&'a Tensor>,
}

impl<'a> Operands<'a> {
    fn of(site: &Site<'_>, op: &MatMul, a: &Port, b: &'a Port) -> Option<Operands<'a>> {
        let (out, out_steps) = site.result();
        let left = Matrices::of(&a.shape, &site.strides(0), op.transpose_a);
        // A vector on the right is a column.
        let right = match b.rank() {
            1 => Matrices::of(&b.shape, &site.strides(1), false).swapped(),
            _ => Matrices::of(&b.shape, &site.strides(1), op.transpose_b),
        };
        let (m, n, k) = (left.rows[0], right.columns[0], left.columns[0]);
        if k == 0 || m == 0 || n == 0 || right.rows[0] != k {
            return None;
        }
        let vectors = usize::from(a.rank() == 1) + usize::from(b.rank() == 1);
        let at = out.len().checked_sub(2 - vectors)?;
        let batch = out[..at].to_vec();
        let c = match vectors {
            0 => Matrices::of(&out, &out_steps, false),
            _ => Matrices { batch: batch.clone(), steps: out_steps[..at].to_vec(), rows: [m, n], columns: [n, 1] },
        };
        let weights = b.constant.as_ref().filter(|_| site.orders.get(1).is_none_or(Option::is_none));
        Some(Operands { a: left, b: right, c, batch, weights })
    }

    fn build(mut self, site: &Site<'_>) -> Result<Option<Built>> {
        let cx = site.cx;
        let (deep, columns) = (self.a.columns[0], self.b.columns[0]);
        let ordinary = site.out_order.is_none() && site.orders.first().is_none_or(Option::is_none);
        let repeated = self.b.batch.iter().all(|&n| n == 1);
        // All rows meet the same matrix: they are the rows of one product.
        if ordinary && repeated && self.a.columns[1] == 1 && self.a.rows[1] == deep && !self.a.batch.is_empty() {
            let rows = self.a.rows[0] * self.a.batch.iter().product::<usize>();
            if rows * columns == site.outputs[0].len() {
                self.a = Matrices { batch: vec![], steps: vec![], rows: [rows, deep], columns: [deep, 1] };
                self.c = Matrices { batch: vec![], steps: vec![], rows: [rows, columns], columns: [columns, 1] };
                self.batch = vec![];
            }
        }
        let rows = self.a.rows[0];
        let (Some((dense, left)), Some((in_rows, out_stride))) = (self.a.lies(), self.c.lies()) else {
            return Ok(None);
        };
        if !in_rows {
            return Ok(None);
        }
        let mut reads = vec![(0, cx.form(&site.inputs[0], Layout::PLAIN))];
        let (right, right_offsets, weights) = match self.weights {
            Some(tensor) => self.packed(site, tensor)?,
            None => {
                let Some((dense, stride)) = self.b.lies() else { return Ok(None) };
                reads.push((1, cx.form(&site.inputs[1], Layout::PLAIN)));
                let right = Right { stride, transposed: !dense, padded: false };
                (right, self.b.offsets(&self.batch), Arg::Read(1))
            }
        };
        let axis = site.outputs[0].rank().saturating_sub(1);
        // What follows counts columns on the last axis; a product with a vector has none.
        if !site.epilogue.is_empty() && site.outputs[0].shape.last() != Some(&columns) {
            return Ok(None);
        }
        let Some(ending) = Ending::of(site, axis, Layout::PLAIN, &mut reads)? else { return Ok(None) };
        let (a, c) = (self.a.offsets(&self.batch), self.c.offsets(&self.batch));
        let offsets = a.iter().zip(&right_offsets).zip(&c).map(|((&a, &b), &c)| [a as i32, b as i32, c as i32, 0]);
        let product = Product {
            rows,
            columns,
            deep,
            left: if dense { Left::Rows(left) } else { Left::Columns(left) },
            right,
            out_stride,
            offsets: offsets.collect(),
            largest: site.inputs.iter().chain(&site.outputs).map(Port::len).max().unwrap_or(0),
        };
        if product.offsets.is_empty() {
            return Ok(None);
        }
        let work = product.launches(cx, [Arg::Read(0), weights, Arg::Write(0)], &ending)?;
        let step = Launches::new(format!("gemm{}", work.name), work.launches);
        let output = cx.form(&site.outputs[0], Layout::PLAIN);
        Ok(Some(step.built(reads, [output]).with_workspace(work.workspace)))
    }

    // Constant matrices as depth x columns, rows filled up with zeros, one after the other.
    fn packed(&self, site: &Site<'_>, tensor: &Tensor) -> Result<(Right, Vec<usize>, Arg)> {
        let (cx, [deep, down], [columns, across]) = (site.cx, self.b.rows, self.b.columns);
        let stride = columns.next_multiple_of(PADDED);
        let form = format!("gemm {deep}x{columns} {down} {across} {stride} {}", cx.half);
        let buffer = cx.packed(&form, &[tensor], || {
            let floats = tensor.to_vec::<f32>()?;
            let mut packed = vec![0.0; floats.len() / columns * stride];
            let matrices = floats.chunks_exact(deep * columns).zip(packed.chunks_exact_mut(deep * stride));
            for (from, to) in matrices {
                for (k, row) in to.chunks_exact_mut(stride).enumerate() {
                    row[..columns].iter_mut().enumerate().for_each(|(n, x)| *x = from[k * down + n * across]);
                }
            }
            Ok(bytes_of(cx, &packed))
        })?;
        let steps = strides(&self.b.batch).into_iter().map(|s| s * deep * stride).collect();
        let own = Matrices { batch: self.b.batch.clone(), steps, rows: [deep, stride], columns: [columns, 1] };
        let right = Right { stride, transposed: false, padded: true };
        Ok((right, own.offsets(&self.batch), buffer.into()))
    }
}
