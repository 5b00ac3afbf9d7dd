//! Arrays of tensors. While all that is done with one is known, it is a sequence of tensors; where an index or the length is not, it
//! is one tensor with the elements along its first axis.

use super::slots::Slots;
use crate::graph::ARRAY;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Concat;
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("create_array", 0, |n| {
        n.ignore(&["dtype"]);
        Ok(Item::Sequence(vec![]).into())
    }),
    rule("lod_array_length", 0, length),
    rule("read_from_array", 0, read),
    rule("tensor_array_to_tensor", 0, to_tensor),
    rule("write_to_array", 0, write),
];

/// The tensor of an item.
pub(super) fn tensor(n: &NodeCx<'_>, item: Item) -> Result<Value> {
    match item {
        Item::Tensor(v) => Ok(v),
        _ => Err(n.fail("an element of an array must be a tensor")),
    }
}

/// An array as one tensor. One without elements has the type and shape of what comes into it.
pub(super) fn stacked(n: &mut NodeCx<'_>, item: &Item) -> Result<Option<Value>> {
    match item {
        Item::Tensor(v) => Ok(Some(*v)),
        Item::Sequence(items) if items.is_empty() => Ok(None),
        Item::Sequence(items) => {
            let mut parts = vec![];
            for item in items {
                let v = tensor(n, item.clone())?;
                parts.push(n.unsqueeze(v, &[0])?);
            }
            Ok(Some(n.concat(&parts, 0)?))
        }
        _ => Err(n.fail("an array of tensors is expected")),
    }
}

/// An element of an array.
pub(super) fn element(n: &mut NodeCx<'_>, array: &Item, index: Value) -> Result<Value> {
    if let (Item::Sequence(items), Some(at)) = (array, n.ints(index)) {
        let at = at.first().copied().unwrap_or(0);
        let at = if at < 0 { at + items.len() as i64 } else { at };
        let found = usize::try_from(at).ok().and_then(|at| items.get(at)).cloned();
        let found = found.ok_or_else(|| n.fail(format!("element {at} of an array of {}", items.len())))?;
        return tensor(n, found);
    }
    let all = stacked(n, array)?.ok_or_else(|| n.fail("an element of an empty array"))?;
    let index = n.as_scalar(index)?;
    n.gather(all, index, 0)
}

fn read(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let array = n.slot_item("X")?.ok_or_else(|| n.fail("slot `X` is empty"))?;
    let index = n.slot("I")?;
    let out = element(n, &array, index)?;
    Ok(n.give(&[("Out", out)]))
}

fn length(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let array = n.slot_item("X")?.ok_or_else(|| n.fail("slot `X` is empty"))?;
    let out = match &array {
        Item::Sequence(items) => n.i64s(&[items.len() as i64])?,
        Item::Tensor(v) => n.size(*v, 0)?,
        _ => return Err(n.fail("an array of tensors is expected")),
    };
    Ok(n.give(&[("Out", out)]))
}

// An element that is there is replaced, one behind the last is added.
fn write(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, index) = (n.slot("X")?, n.slot("I")?);
    let array = n.slot_item(ARRAY)?.unwrap_or(Item::Sequence(vec![]));
    let known = n.ints(index).and_then(|i| i.first().copied()).and_then(|i| usize::try_from(i).ok());
    match (array, known) {
        (Item::Sequence(mut items), Some(at)) if at <= items.len() => {
            match items.get_mut(at) {
                Some(item) => *item = x.into(),
                None => items.push(x.into()),
            }
            Ok(Item::Sequence(items).into())
        }
        // Whoever writes into an empty array writes its first element.
        (Item::Sequence(items), None) if items.is_empty() => Ok(Item::Sequence(vec![x.into()]).into()),
        (array, _) => {
            let all = stacked(n, &array)?.ok_or_else(|| n.fail("an element behind the end of an array"))?;
            let out = with_element(n, all, x, index)?;
            Ok(n.give(&[("Out", out)]))
        }
    }
}

// The elements before the index, the new one, and those behind it.
fn with_element(n: &mut NodeCx<'_>, all: Value, x: Value, index: Value) -> Result<Value> {
    // An array that is empty so far has ones for the sizes of its elements that are not known yet.
    let length = n.size(all, 0)?;
    let shape = n.shape_of(x)?;
    let shape = n.concat(&[length, shape], 0)?;
    let all = n.stretch(all, shape)?;
    let index = n.reshape(index, &[1])?;
    let index = n.convert(index, ElementType::I64)?;
    let row = n.unsqueeze(x, &[0])?;
    let start = n.i64s(&[0])?;
    let before = n.cut(all, start, index, 0)?;
    let one = n.i64s(&[1])?;
    let next = n.plus(index, one)?;
    let end = n.i64s(&[i64::MAX])?;
    let after = n.cut(all, next, end, 0)?;
    n.put(Concat { axis: 0 }, &[before, row, after])
}

// Elements joined along an axis, or stacked along a new one; with the size of each along it.
fn to_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let array = n.slot_item("X")?.ok_or_else(|| n.fail("slot `X` is empty"))?;
    let axis: i64 = n.attr("axis", 0)?;
    let is_stack: bool = n.attr("use_stack", false)?;
    let (out, sizes) = match &array {
        Item::Sequence(items) => {
            let (mut parts, mut sizes) = (vec![], vec![]);
            for item in items {
                let v = tensor(n, item.clone())?;
                let v = if is_stack { n.unsqueeze(v, &[axis])? } else { v };
                sizes.push(n.size(v, axis)?);
                parts.push(v);
            }
            if parts.is_empty() {
                return Err(n.fail("an array without elements"));
            }
            (n.concat(&parts, axis)?, n.concat(&sizes, 0)?)
        }
        Item::Tensor(all) => joined(n, *all, axis, is_stack)?,
        _ => return Err(n.fail("an array of tensors is expected")),
    };
    let sizes = n.convert(sizes, ElementType::I32)?;
    Ok(n.give(&[("Out", out), ("OutIndex", sizes)]))
}

fn joined(n: &mut NodeCx<'_>, all: Value, axis: i64, is_stack: bool) -> Result<(Value, Value)> {
    let rank = n.known_rank(all)?;
    let inner = rank - usize::from(!is_stack);
    let axis = n.axis(axis, inner)?;
    let count = n.size(all, 0)?;
    // The elements' axis goes in front of the one that they are joined along.
    let mut order: Vec<i64> = (1..rank as i64).collect();
    order.insert(axis, 0);
    let moved = if axis == 0 { all } else { n.transpose(all, &order)? };
    if is_stack {
        let one = n.constant(Tensor::from_slice(&[1], &[1i64])?)?;
        let sizes = n.stretch(one, count)?;
        return Ok((moved, sizes));
    }
    let shape = n.shape_of(moved)?;
    let before = n.part(shape, 0, axis as i64, 0)?;
    let after = n.part(shape, axis as i64 + 2, rank as i64, 0)?;
    let middle = n.i64s(&[-1])?;
    let shape = n.concat(&[before, middle, after], 0)?;
    let size = n.size(all, axis as i64 + 1)?;
    let sizes = n.stretch(size, count)?;
    Ok((n.reshaped(moved, shape, false)?, sizes))
}
