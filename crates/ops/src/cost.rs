//! Multiply-accumulates that several families count alike.

use carafe_graph::Fact;

/// Number of elements of these sizes.
pub(crate) fn product(sizes: &[usize]) -> Option<u64> {
    sizes.iter().try_fold(1u64, |a, &b| a.checked_mul(b as u64))
}

/// Every element of `image` meets a filter; the first `skip` axes of the filters count filters.
pub(crate) fn convolution(image: &Fact, filters: Option<&&Fact>, skip: usize) -> Option<u64> {
    let filter = product(filters?.shape.to_static()?.get(skip..)?)?;
    product(&image.shape.to_static()?)?.checked_mul(filter)
}

/// Every step multiplies by the two matrices of weights, the first of which is input `first`; `axes` leading axes of input 0
/// count steps.
pub(crate) fn recurrent(inputs: &[&Fact], first: usize, axes: usize) -> Option<u64> {
    let shape = |i: usize| inputs.get(i)?.shape.to_static();
    let weights = product(&shape(first)?)?.checked_add(product(&shape(first + 1)?)?)?;
    product(shape(0)?.get(..axes)?)?.checked_mul(weights)
}
