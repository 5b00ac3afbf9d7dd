//! TensorList: lists that are values. `stack.rs` says how one is carried; a loop that sets or reads them at its counter is
//! recognised by `loop_body.rs`.

use super::stack::{
    Element, declared_shape, fit, get, is_all, joined, len, len_i32, lengthen, push, put_rows, set, split, stacked,
    zeros,
};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("EmptyTensorList", 0, empty),
    rule("TensorListConcat", 0, concat_declared),
    rule("TensorListConcatLists", 0, concat_lists),
    rule("TensorListConcatV2", 0, concat),
    rule("TensorListElementShape", 0, element_shape),
    rule("TensorListFromTensor", 0, from_tensor),
    rule("TensorListGather", 0, gather),
    rule("TensorListGetItem", 0, get_item),
    rule("TensorListLength", 0, length),
    rule("TensorListPopBack", 0, pop_back),
    rule("TensorListPushBack", 0, push_back),
    rule("TensorListReserve", 0, reserve),
    rule("TensorListResize", 0, resize),
    rule("TensorListScatter", 0, scatter),
    rule("TensorListScatterIntoExistingList", 0, scatter_into),
    rule("TensorListScatterV2", 0, scatter_v2),
    rule("TensorListSetItem", 0, set_item),
    rule("TensorListSplit", 0, split_rule),
    rule("TensorListStack", 0, stack),
];

fn reserve(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["shape_type"]);
    let element = Element::of(n, "element_dtype")?;
    let shape = declared_shape(n, 0)?;
    let count = n.input(1)?;
    Ok(zeros(n, element, &shape, count)?.into())
}

fn empty(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["shape_type"]);
    n.ignore_inputs(1);
    let element = Element::of(n, "element_dtype")?;
    let shape = declared_shape(n, 0)?;
    let none = n.i64(0)?;
    Ok(zeros(n, element, &shape, none)?.into())
}

fn from_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype", "shape_type"]);
    n.ignore_inputs(1);
    Ok(n.input(0)?.into())
}

fn set_item(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    let grows = n.attr("resize_if_index_out_of_bounds", false)?;
    let (list, index, value) = (n.input(0)?, n.input(1)?, n.input(2)?);
    Ok(set(n, list, index, value, grows)?.into())
}

fn get_item(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    n.ignore_inputs(2);
    let (list, index) = (n.input(0)?, n.input(1)?);
    Ok(n.gather(list, index, 0)?.into())
}

fn push_back(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    let (list, value) = (n.input(0)?, n.input(1)?);
    Ok(push(n, list, value)?.into())
}

fn pop_back(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    n.ignore_inputs(1);
    let list = n.input(0)?;
    let (last, zero) = (n.i64s(&[-1])?, n.i64s(&[0])?);
    let rest = n.cut(list, zero, last, 0)?;
    let last = n.part(list, -1, i64::MAX, 0)?;
    let last = n.squeeze(last, &[0])?;
    Ok(vec![rest, last].into())
}

fn stack(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_elements"]);
    let element = Element::of(n, "element_dtype")?;
    let list = n.input(0)?;
    let shape = declared_shape(n, 1)?;
    Ok(stacked(n, list, element, &shape)?.into())
}

fn gather(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    n.ignore_inputs(2);
    let (list, indices) = (n.input(0)?, n.input(1)?);
    Ok(get(n, list, indices)?.into())
}

fn length(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let list = n.input(0)?;
    Ok(len_i32(n, list)?.into())
}

fn element_shape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ty = n.attr("shape_type", ElementType::I64)?;
    let list = n.input(0)?;
    let shape = n.shape_of(list)?;
    let shape = n.part(shape, 1, i64::MAX, 0)?;
    Ok(n.convert(shape, ty)?.into())
}

fn resize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (list, size) = (n.input(0)?, n.input(1)?);
    let size = n.convert(size, ElementType::I64)?;
    let size = n.reshape(size, &[1])?;
    let long = lengthen(n, list, size)?;
    let zero = n.i64s(&[0])?;
    Ok(n.cut(long, zero, size, 0)?.into())
}

fn concat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore_inputs(2);
    concat_declared(n)
}

fn concat_declared(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype", "element_shape", "shape_type"]);
    let list = n.input(0)?;
    let (value, lengths) = joined(n, list)?;
    Ok(vec![value, lengths].into())
}

fn concat_lists(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let a = fit(n, a, b, 1)?;
    Ok(n.concat(&[a, b], 0)?.into())
}

fn split_rule(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype", "shape_type"]);
    n.ignore_inputs(1);
    let (value, lengths) = (n.input(0)?, n.input(2)?);
    Ok(split(n, value, lengths)?.into())
}

// The rows of a tensor at indices of a list of `count` elements; -1 is as many as the largest index needs.
fn scattered(n: &mut NodeCx<'_>, value: Value, indices: Value, count: Option<Value>) -> Result<Outputs> {
    let known = count.and_then(|c| n.ints(c)).and_then(|c| c.first().copied());
    let exact = known.is_some_and(|c| c < 0 || n.shape(value).dim(0).get() == Some(c));
    if exact && n.rank(value).is_some() && is_all(n, value, indices) {
        return Ok(value.into());
    }
    let indices = n.convert(indices, ElementType::I64)?;
    let needed = {
        let largest = n.max_over(indices, &[0], true)?;
        let one = n.i64s(&[1])?;
        n.plus(largest, one)?
    };
    let count = match (known, count) {
        (Some(c), _) if c < 0 => needed,
        (_, Some(count)) => {
            let count = n.convert(count, ElementType::I64)?;
            let count = n.reshape(count, &[1])?;
            n.max(count, needed)?
        }
        (_, None) => needed,
    };
    let shape = n.shape_of(value)?;
    let sizes = n.part(shape, 1, i64::MAX, 0)?;
    let target = n.concat(&[count, sizes], 0)?;
    let zero = n.scalar_like(value, 0.0)?;
    let mode = carafe_ops::movement::broadcast::BroadcastMode::Numpy;
    let list = n.emit(carafe_ops::movement::Broadcast { mode }, &[zero, target])?;
    Ok(put_rows(n, list, indices, value)?.into())
}

fn scatter(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype", "shape_type"]);
    n.ignore_inputs(2);
    let (value, indices) = (n.input(0)?, n.input(1)?);
    let count = n.i64(-1)?;
    scattered(n, value, indices, Some(count))
}

fn scatter_v2(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype", "shape_type"]);
    let (value, indices) = (n.input(0)?, n.input(1)?);
    let count = n.input(3)?;
    scattered(n, value, indices, Some(count))
}

fn scatter_into(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["element_dtype"]);
    let (list, value, indices) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let indices = n.convert(indices, ElementType::I64)?;
    let list = fit(n, list, value, 1)?;
    let largest = n.max_over(indices, &[0], true)?;
    let one = n.i64s(&[1])?;
    let needed = n.plus(largest, one)?;
    let have = len(n, list)?;
    let needed = n.max(needed, have)?;
    let list = lengthen(n, list, needed)?;
    Ok(put_rows(n, list, indices, value)?.into())
}
