//! TensorArray: lists of the first generation. There the handle is the array and `flow` orders what is done to it; here the
//! flow carries the elements (`stack.rs`) and the handle says only whether the array grows.

use super::stack::{Element, fit, get, is_all, joined, len_i32, put_rows, set, split, zeros};
use super::truth::{boolean, known};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_tensor::{ElementType, PartialShape};

pub(super) const RULES: &[StaticRule] = &[
    rule("TensorArrayCloseV2", 0, close),
    rule("TensorArrayCloseV3", 0, close),
    rule("TensorArrayConcatV2", 0, concat),
    rule("TensorArrayConcatV3", 0, concat),
    rule("TensorArrayGatherV2", 0, gather),
    rule("TensorArrayGatherV3", 0, gather),
    rule("TensorArrayReadV2", 0, read),
    rule("TensorArrayReadV3", 0, read),
    rule("TensorArrayScatterV2", 0, scatter),
    rule("TensorArrayScatterV3", 0, scatter),
    rule("TensorArraySizeV2", 0, size),
    rule("TensorArraySizeV3", 0, size),
    rule("TensorArraySplitV2", 0, split_rule),
    rule("TensorArraySplitV3", 0, split_rule),
    rule("TensorArrayV3", 0, make),
    rule("TensorArrayWriteV2", 0, write),
    rule("TensorArrayWriteV3", 0, write),
];

fn make(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["clear_after_read", "identical_element_shapes", "tensor_array_name"]);
    let element = Element::of(n, "dtype")?;
    let grows = n.attr("dynamic_size", false)?;
    let shape = n.attr("element_shape", PartialShape::dynamic())?;
    let count = n.input(0)?;
    let flow = zeros(n, element, &shape, count)?;
    let handle = n.constant(boolean(grows)?)?;
    Ok(vec![handle, flow].into())
}

// Whether the array of this handle grows when it is written behind its end.
fn grows(n: &mut NodeCx<'_>) -> Result<bool> {
    let handle = n.input(0)?;
    Ok(known(n.fact(handle)).unwrap_or(true))
}

fn write(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["T"]);
    let grows = grows(n)?;
    let (index, value, flow) = (n.input(1)?, n.input(2)?, n.input(3)?);
    Ok(set(n, flow, index, value, grows)?.into())
}

fn read(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dtype"]);
    let (index, flow) = (n.input(1)?, n.input(2)?);
    Ok(n.gather(flow, index, 0)?.into())
}

fn gather(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let element = Element::of(n, "dtype")?;
    let shape = n.attr("element_shape", PartialShape::dynamic())?;
    let (indices, flow) = (n.input(1)?, n.input(2)?);
    let rows = get(n, flow, indices)?;
    Ok(super::stack::stacked(n, rows, element, &shape)?.into())
}

fn scatter(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["T"]);
    let (indices, value, flow) = (n.input(1)?, n.input(2)?, n.input(3)?);
    let (have, given) = (n.shape(flow).dim(0), n.shape(value).dim(0));
    let grows = grows(n)?;
    let whole = n.rank(flow).is_some() && (carries_all(have, given) || (grows && have.get() == Some(0)));
    if whole && is_all(n, value, indices) {
        return Ok(value.into());
    }
    let flow = fit(n, flow, value, 1)?;
    let indices = n.convert(indices, ElementType::I64)?;
    Ok(put_rows(n, flow, indices, value)?.into())
}

fn carries_all(have: carafe_tensor::Dim, given: carafe_tensor::Dim) -> bool {
    let known = have.get().is_some() && have.get() == given.get();
    known || (have.symbol().is_some() && have.symbol() == given.symbol())
}

fn size(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let flow = n.input(1)?;
    Ok(len_i32(n, flow)?.into())
}

fn concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dtype", "element_shape_except0"]);
    let flow = n.input(1)?;
    let (value, lengths) = joined(n, flow)?;
    Ok(vec![value, lengths].into())
}

fn split_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["T"]);
    n.ignore_inputs(3);
    let (value, lengths) = (n.input(1)?, n.input(2)?);
    Ok(split(n, value, lengths)?.into())
}

fn close(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore_inputs(0);
    Ok(Outputs::default())
}
