//! Shared by the conversions: which casts exist, and that a partly known shape survives them. Between strings and numbers
//! there is none.

use carafe_graph::{Content, EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

/// Declares `output` as `input` in another type.
pub(crate) fn infer(cx: &mut InferCx<'_>, input: usize, output: usize, to: ElementType) -> Result<()> {
    let from = cx.ty(input);
    let text = |ty: ElementType| ty == ElementType::String;
    let mixed = !from.is_dynamic() && !to.is_dynamic() && text(from) != text(to);
    cx.require(!mixed, || format!("there is no conversion from {from} to {to}"))?;
    cx.set(output, to, cx.shape(input).clone());
    let holds_dims = matches!(to, ElementType::I32 | ElementType::I64);
    if let (Content::Partial(dims), true) = (&cx.fact(input).content, holds_dims) {
        cx.set_dims_value(output, dims.clone());
    }
    Ok(())
}

/// Stores `input` in the type inferred for `output`.
pub(crate) fn eval(cx: &mut EvalCx<'_>, input: usize, output: usize) -> Result<()> {
    let to = match cx.out_ty(output) {
        ElementType::Dynamic => cx.ty(input),
        ty => ty,
    };
    let t = cx.input(input).cast(to)?;
    cx.set(output, t)
}
