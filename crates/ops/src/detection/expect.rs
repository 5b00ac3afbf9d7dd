//! Checks of ports and attributes that many detection operations share, and how results are stored.

use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, Tensor};

/// A dimension that, where known, is `wanted`.
pub(super) fn dim_is(cx: &InferCx<'_>, input: usize, axis: usize, wanted: i64) -> Result<()> {
    cx.require(cx.dim(input, axis).contains(wanted), || {
        format!("{} needs {wanted} at axis {axis}, found [{}]", cx.port_name(input), cx.shape(input))
    })
}

/// Two dimensions, each as (input, axis), that must agree; what both say together.
pub(super) fn same_dim(cx: &InferCx<'_>, a: (usize, usize), b: (usize, usize)) -> Result<Dim> {
    cx.dim(a.0, a.1).merge(cx.dim(b.0, b.1)).ok_or_else(|| {
        cx.fail(format!(
            "axis {} of {} and axis {} of {} must agree, found [{}] and [{}]",
            a.1,
            cx.port_name(a.0),
            b.1,
            cx.port_name(b.0),
            cx.shape(a.0),
            cx.shape(b.0)
        ))
    })
}

/// Float inputs of one common type.
pub(super) fn same_float(cx: &InferCx<'_>, inputs: &[usize]) -> Result<ElementType> {
    for &i in inputs {
        cx.require_float(i)?;
    }
    cx.same_type(inputs)
}

/// A scalar, or a vector of one element.
pub(super) fn single(cx: &InferCx<'_>, input: usize) -> Result<()> {
    cx.require_rank(input, &[0, 1])?;
    if cx.rank(input) == Some(1) { dim_is(cx, input, 0, 1) } else { Ok(()) }
}

/// An attribute that names the type of index outputs.
pub(super) fn index_type(cx: &InferCx<'_>, attr: &str, ty: ElementType) -> Result<()> {
    cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
        format!("attribute `{attr}` must be i64 or i32, found {ty}")
    })
}

/// An attribute that counts or sizes something.
pub(super) fn at_least(cx: &InferCx<'_>, attr: &str, value: i64, least: i64) -> Result<()> {
    cx.require(value >= least, || format!("attribute `{attr}` must be at least {least}, found {value}"))
}

/// An attribute that counts something which is looped over.
pub(super) fn between(cx: &InferCx<'_>, attr: &str, value: i64, least: i64, most: i64) -> Result<()> {
    cx.require((least..=most).contains(&value), || {
        format!("attribute `{attr}` must be from {least} to {most}, found {value}")
    })
}

/// A count that is decided by the data: anything up to the largest the dimension can be.
pub(super) fn up_to(d: Dim) -> Dim {
    Dim::range(0, d.max())
}

/// Stores f32 results as the inferred type.
pub(super) fn put_f32(cx: &mut EvalCx<'_>, output: usize, tensor: Tensor) -> Result<()> {
    match cx.out_ty(output) {
        ElementType::F32 | ElementType::Dynamic => cx.set(output, tensor),
        ty => {
            let tensor = tensor.cast(ty)?;
            cx.set(output, tensor)
        }
    }
}

/// Zeros to be filled in; a size that cannot be had is an error.
pub(super) fn zeros(shape: &[usize]) -> Result<Tensor> {
    Ok(Tensor::zeros(ElementType::F32, shape)?)
}

/// The image a region of interest lies in.
pub(super) fn image_index(cx: &EvalCx<'_>, index: i64, images: usize) -> Result<usize> {
    usize::try_from(index)
        .ok()
        .filter(|&i| i < images)
        .ok_or_else(|| cx.fail(format!("a region names image {index}, there are {images}")))
}
