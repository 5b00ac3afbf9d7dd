//! Puts a value into another order of dimensions.

use super::{Cpu, Io, Step};
use carafe_graph::Result;
use carafe_kernels::movement::{StridedCopy, View};
use carafe_plan::{Layout, Operand, Parts, RowStrides, Rows};
use carafe_tensor::ElementType;
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

impl Step<Cpu> for Copy {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn accepts_row_stride(&self, operand: Operand, row: usize) -> bool {
        let view = if operand == Operand::Read(0) { &self.from } else { &self.to };
        view.spread(row, 2 * row).is_some()
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        let spread = |view: &View, rows: Option<Rows>| match rows {
            Some(rows) => view.spread(rows.len, rows.stride),
            None => Some(view.clone()),
        };
        let from = spread(&self.from, strides.reads.first().copied().flatten())?;
        let to = spread(&self.to, strides.writes.first().copied().flatten())?;
        let copy = StridedCopy::between(&from, &to, self.elem_size);
        Some(Arc::new(Copy { name: self.name, copy, from, to, elem_size: self.elem_size }))
    }
    fn parts(&self) -> Option<Parts> {
        self.as_part()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.copy.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
    }
}

impl Copy {
    // A range of each row of the input, when it is no more.
    fn as_part(&self) -> Option<Parts> {
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
        Some(Parts { outer, whole, ranges: vec![(start, len)], of_rows, elem_size, joins: false })
    }
}

/// Dimensions as they lie in the first layout, and their order in the second.
fn permutation(shape: &[usize], from: Layout, to: Layout) -> (Vec<usize>, Vec<usize>) {
    let rank = shape.len();
    let order = to.order(rank).into_iter().map(|axis| from.axis(axis, rank)).collect();
    (from.dims(shape), order)
}

/// A step that copies a value of this shape from one layout to another.
pub(crate) fn step(shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Cpu>> {
    let (dims, order) = permutation(shape, from, to);
    Arc::new(Copy::permute("reorder", &dims, &order, ty))
}
