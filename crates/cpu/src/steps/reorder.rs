//! Puts a value into another order of dimensions.

use super::{Io, Step};
use crate::plan::Layout;
use carafe_graph::Result;
use carafe_tensor::{ElementType, Tensor, strides};
use std::sync::Arc;

/// A copy with the dimensions in another order.
#[derive(Debug)]
pub(crate) struct Copy {
    name: &'static str,
    out: Vec<usize>,
    steps: Vec<usize>,
    size: usize,
}

impl Copy {
    /// Dimension `order[i]` of the input becomes dimension `i` of the output.
    pub(crate) fn permute(name: &'static str, dims: &[usize], order: &[usize], ty: ElementType) -> Copy {
        let steps = strides(dims);
        Copy {
            name,
            out: order.iter().map(|&a| dims[a]).collect(),
            steps: order.iter().map(|&a| steps[a]).collect(),
            size: ty.bits() / 8,
        }
    }
}

impl Step for Copy {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        let (from, to) = (io.inputs[0], &mut *io.outputs[0]);
        for (flat, unit) in to.chunks_exact_mut(self.size).enumerate() {
            let at = place(flat, &self.out, &self.steps) * self.size;
            unit.copy_from_slice(&from[at..at + self.size]);
        }
        Ok(())
    }
}

fn place(mut flat: usize, out: &[usize], steps: &[usize]) -> usize {
    let mut at = 0;
    for (n, step) in out.iter().zip(steps).rev() {
        at += flat % n * step;
        flat /= n;
    }
    at
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
    Ok(tensor.select(&out, |flat| Some(place(flat, &out, &steps)))?.reshaped(tensor.shape())?)
}
