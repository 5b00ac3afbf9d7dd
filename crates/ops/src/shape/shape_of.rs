//! ShapeOf: the dimensions of a tensor as a vector. Known before anything runs, as far as the shape is.

use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Shape vector of the chosen integer type.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, shape_only)]
pub struct ShapeOf {
    /// i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
}

impl Op for ShapeOf {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
            format!("attribute `output_type` must be i64 or i32, found {ty}")
        })?;
        infer(cx, ty)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.output_type == ElementType::I64 { Version::of::<ShapeOfV1>(self, cx) } else { None }
    }
}

/// Shape vector, always i64.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ShapeOf", since = 1, until = 2, shape_only)]
pub struct ShapeOfV1;

impl Op for ShapeOfV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, ElementType::I64)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<ShapeOf>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, ty: ElementType) -> Result<()> {
    match cx.shape(0).dims() {
        Some(dims) => {
            cx.set(0, ty, PartialShape::of(&[dims.len()]));
            cx.set_dims_value(0, dims.to_vec());
        }
        None => cx.set(0, ty, PartialShape::new([Dim::ANY])),
    }
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>) -> Result<()> {
    let dims: Vec<i64> = cx.shape(0).iter().map(|&n| n as i64).collect();
    cx.put(0, &[dims.len()], dims)
}
