//! Puts a value into another order of dimensions.

use super::apart::{Apart, Operand, Pieces, Rows};
use super::{Io, Step};
use crate::plan::Layout;
use carafe_graph::Result;
use carafe_kernels::movement::{StridedCopy, View};
use carafe_tensor::{ElementType, Tensor, strides};
use std::sync::Arc;

/// A copy of elements that lie elsewhere in the result.
#[derive(Debug)]
pub(crate) struct Copy {
    name: &'static str,
    copy: StridedCopy,
    /// What is copied, and where it goes.
    from: View,
    to: View,
    elem_size: usize,
}

impl Copy {
    /// The elements of a view, one after another.
    pub(crate) fn new(name: &'static str, from: View, elem_size: usize) -> Copy {
        let to = View::whole(&from.dims);
        Copy { name, copy: StridedCopy::between(&from, &to, elem_size), from, to, elem_size }
    }
    /// Dimension `order[i]` of the input becomes dimension `i` of the output.
    pub(crate) fn permute(name: &'static str, dims: &[usize], order: &[usize], ty: ElementType) -> Copy {
        Copy::new(name, View::whole(dims).permuted(order), ty.bits() / 8)
    }
}

impl Step for Copy {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn may_lie_apart(&self, operand: Operand, row: usize) -> bool {
        let view = if operand == Operand::Read(0) { &self.from } else { &self.to };
        view.spread(row, 2 * row).is_some()
    }
    fn apart(&self, apart: &Apart) -> Option<Arc<dyn Step>> {
        let spread = |view: &View, rows: Option<Rows>| match rows {
            Some(rows) => view.spread(rows.len, rows.pitch),
            None => Some(view.clone()),
        };
        let from = spread(&self.from, apart.reads.first().copied().flatten())?;
        let to = spread(&self.to, apart.writes.first().copied().flatten())?;
        let copy = StridedCopy::between(&from, &to, self.elem_size);
        Some(Arc::new(Copy { name: self.name, copy, from, to, elem_size: self.elem_size }))
    }
    fn pieces(&self) -> Option<Pieces> {
        self.as_piece()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        self.copy.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
    }
}

impl Copy {
    // A range of each row of the input, when it is no more.
    fn as_piece(&self) -> Option<Pieces> {
        let (mut axes, from) = (vec![], &self.from);
        for (&n, &stride) in from.dims.iter().zip(&from.strides).rev().filter(|(n, _)| **n != 1) {
            match axes.last_mut() {
                Some((len, step)) if *step * *len as isize == stride => *len *= n,
                _ => axes.push((n, stride)),
            }
        }
        let (start, elem_size) = (from.start, self.elem_size);
        let (outer, whole, len) = match axes[..] {
            [] => (1, start + 1, 1),
            [(len, 1)] => (1, start + len, len),
            [(len, 1), (outer, pitch)] if usize::try_from(pitch).is_ok_and(|p| start + len <= p) => {
                (outer, pitch as usize, len)
            }
            _ => return None,
        };
        let of_rows = from.dims.last() == Some(&len) && outer > 1;
        Some(Pieces { outer, whole, ranges: vec![(start, len)], of_rows, elem_size, joins: false })
    }
}

/// Dimensions as they lie in the first layout, and their order in the second.
fn permutation(shape: &[usize], from: Layout, to: Layout) -> (Vec<usize>, Vec<usize>) {
    let rank = shape.len();
    let order = to.order(rank).into_iter().map(|axis| from.axis(axis, rank)).collect();
    (from.dims(shape), order)
}

/// A step that copies a value of this shape from one layout to another.
pub(crate) fn step(shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step> {
    let (dims, order) = permutation(shape, from, to);
    Arc::new(Copy::permute("reorder", &dims, &order, ty))
}

/// A constant in another layout; its shape still is what the model says.
pub(crate) fn constant(tensor: &Tensor, from: Layout, to: Layout) -> Result<Tensor> {
    let (dims, order) = permutation(tensor.shape(), from, to);
    let steps = strides(&dims);
    let out: Vec<usize> = order.iter().map(|&a| dims[a]).collect();
    let steps: Vec<usize> = order.iter().map(|&a| steps[a]).collect();
    let place = |mut flat: usize| {
        let mut at = 0;
        for (n, step) in out.iter().zip(&steps).rev() {
            at += flat % n * step;
            flat /= n;
        }
        Some(at)
    };
    Ok(tensor.select(&out, place)?.reshaped(tensor.shape())?)
}
