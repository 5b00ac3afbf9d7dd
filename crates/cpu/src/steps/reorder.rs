//! Puts a value into another order of dimensions.

use super::{Io, Step};
use crate::plan::Layout;
use carafe_graph::Result;
use carafe_kernels::movement::StridedCopy;
use carafe_tensor::{ElementType, Tensor, strides};
use std::sync::Arc;

/// A copy of elements that lie elsewhere in the result.
#[derive(Debug)]
pub(crate) struct Copy {
    name: &'static str,
    copy: StridedCopy,
}

impl Copy {
    pub(crate) fn new(name: &'static str, copy: StridedCopy) -> Copy {
        Copy { name, copy }
    }
    /// Dimension `order[i]` of the input becomes dimension `i` of the output.
    pub(crate) fn permute(name: &'static str, dims: &[usize], order: &[usize], ty: ElementType) -> Copy {
        Copy { name, copy: StridedCopy::permute(dims, order, ty.bits() / 8) }
    }
}

impl Step for Copy {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        self.copy.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
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
