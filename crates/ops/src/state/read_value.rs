//! ReadValue: the value of a variable. Before the first assignment and after a reset it is the initial value, or zeros of
//! the declared shape when there is no initial value; a dimension left open there starts at its smallest size.

use carafe_graph::{Error, EvalCx, Fact, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

/// Reads a variable.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "init_value?", outputs = "value", stateful)]
pub struct ReadValue {
    /// Name of the variable.
    pub variable_id: String,
    /// Element type of every value it may hold; files of the first opset6 release leave it out.
    #[attr(default = ElementType::Dynamic)]
    pub variable_type: ElementType,
    /// Shape that every value it may hold fits.
    #[attr(default = PartialShape::dynamic())]
    pub variable_shape: PartialShape,
}

impl Op for ReadValue {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_id(cx, &self.variable_id)?;
        let (ty, shape) = (self.variable_type, &self.variable_shape);
        if cx.has(0) {
            let init = cx.fact(0);
            cx.require(ty.is_dynamic() || init.ty.is_dynamic() || init.ty == ty, || {
                format!("the variable is of type {ty}, its initial value of {}", init.ty)
            })?;
            cx.require(shape.compatible(&init.shape), || {
                format!("the variable has shape [{shape}], which does not hold its initial value [{}]", init.shape)
            })?;
            if ty.is_dynamic() && shape.rank().is_none() {
                return infer_like_init(cx);
            }
        }
        cx.set(0, ty, shape.clone());
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let value = match cx.variable(&self.variable_id) {
            Some(t) => t.clone(),
            None if cx.has(0) => cx.input(0).clone(),
            None => zeros(self.variable_type, &self.variable_shape)?,
        };
        cx.set(0, value)
    }
}

/// Reads a variable whose type and shape are those of its initial value.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ReadValue", since = 3, until = 5, inputs = "init_value", outputs = "value", stateful)]
pub struct ReadValueV3 {
    /// Name of the variable.
    pub variable_id: String,
}

impl Op for ReadValueV3 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        require_id(cx, &self.variable_id)?;
        infer_like_init(cx)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let value = cx.variable(&self.variable_id).unwrap_or(cx.input(0)).clone();
        cx.set(0, value)
    }
}

fn require_id(cx: &InferCx<'_>, id: &str) -> Result<()> {
    cx.require(!id.is_empty(), || "attribute `variable_id` must not be empty".to_string())
}

// Neither the elements nor the symbols of the initial value hold for what is stored later. When exact inputs come next,
// not even its dimensions do.
fn infer_like_init(cx: &mut InferCx<'_>) -> Result<()> {
    let mut shape = if cx.exact() { PartialShape::dynamic() } else { cx.shape(0).clone() };
    if let Some(dims) = shape.dims_mut() {
        dims.iter_mut().for_each(|d| *d = Dim::range(d.min(), d.max()));
    }
    cx.set_fact(0, Fact::new(cx.ty(0), shape));
    Ok(())
}

fn zeros(ty: ElementType, shape: &PartialShape) -> Result<Tensor> {
    let sizes = shape.dims().and_then(|dims| {
        dims.iter().map(|d| usize::try_from(d.min()).ok()).collect::<Option<Vec<_>>>()
    });
    match sizes {
        Some(sizes) if !ty.is_dynamic() => Ok(Tensor::zeros(ty, &sizes)?),
        _ => Err(Error::invalid(format!("the variable has no initial value and no known shape: {ty}[{shape}]"))),
    }
}
