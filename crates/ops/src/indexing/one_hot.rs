//! OneHot: a new axis of length `depth` that holds `on_value` at the index and `off_value` elsewhere. An index outside of
//! the depth gives `off_value` throughout.

use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape, Tensor};

carafe_graph::attr_enum! {
    /// What a negative index means.
    pub enum NegativeIndices {
        /// Outside of the depth.
        Ignore = "ignore_negative",
        /// Counts from the end.
        Normalize = "normalize",
    }
}

/// Marks the position each index points to.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 16, inputs = "indices, depth, on_value, off_value", moves = "2, 3", shape_inputs = "1")]
pub struct OneHot {
    /// Place of the new axis; negative counts from the end of the output.
    pub axis: i64,
    /// What a negative index means.
    #[attr(default = NegativeIndices::Ignore)]
    pub negative_indices_mode: NegativeIndices,
}

impl Op for OneHot {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.axis, self.negative_indices_mode)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.negative_indices_mode == NegativeIndices::Ignore { Version::of::<OneHotV1>(self, cx) } else { None }
    }
}

/// Marks the position each index points to.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "OneHot", since = 1, until = 15, inputs = "indices, depth, on_value, off_value", moves = "2, 3", shape_inputs = "1")]
pub struct OneHotV1 {
    /// Place of the new axis; negative counts from the end of the output.
    pub axis: i64,
}

impl Op for OneHotV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.axis, NegativeIndices::Ignore)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<OneHot>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, axis: i64) -> Result<()> {
    cx.require_integer(0)?;
    cx.require_integer(1)?;
    for i in 1..4 {
        cx.require_rank(i, &[0])?;
    }
    let ty = cx.same_type(&[2, 3])?;
    let depth = cx.dims_value(1).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY);
    cx.require(depth.max().is_none_or(|m| m >= 0), || format!("depth must not be negative, found {depth}"))?;
    let shape = match cx.shape(0).dims() {
        Some(dims) => {
            let mut dims = dims.to_vec();
            dims.insert(normalize_axis(axis, dims.len() + 1)?, depth.clamp_shape());
            PartialShape::new(dims)
        }
        None => PartialShape::dynamic(),
    };
    cx.set(0, ty, shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, axis: i64, negative: NegativeIndices) -> Result<()> {
    let out = cx.out_shape(0)?;
    let axis = normalize_axis(axis, out.len())?;
    let depth = out[axis];
    let inner: usize = out[axis + 1..].iter().product();
    let indices = cx.get::<i64>(0)?;
    let position = |index: i64| match negative {
        NegativeIndices::Normalize if index < 0 => index.saturating_add(depth as i64),
        _ => index,
    };
    let mut values = Tensor::zeros(cx.ty(2), &[2])?;
    values.copy_elements(0, cx.input(3), 0, 1)?;
    values.copy_elements(1, cx.input(2), 0, 1)?;
    let marked = values.select(&out, |flat| {
        let (rest, k) = (flat / inner, flat % inner);
        let index = position(indices[rest / depth * inner + k]);
        Some(usize::from(index == (rest % depth) as i64))
    })?;
    cx.set(0, marked)
}
