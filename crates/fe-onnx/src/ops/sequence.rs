//! Sequences of tensors. Where the elements are known one by one, the rules here take them apart and put them together and
//! nothing is left of the sequence; where a length or a position is only known in a run, the sequence is packed and the
//! operations of our own opset work on it.

use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, join, rule};
use carafe_graph::{Fact, ItemType, Result, Value};
use carafe_ops::movement::VariadicSplit;
use carafe_ops::carafe::{SequenceAt, SequenceConcat, SequenceErase, SequenceInsert, SequenceLength, SequenceSplit};
use carafe_tensor::Dim;

pub(crate) const RULES: &[StaticRule] = &[
    rule("ConcatFromSequence", 11, concat_from_sequence),
    rule("SequenceAt", 11, sequence_at),
    rule("SequenceConstruct", 11, sequence_construct),
    rule("SequenceEmpty", 11, sequence_empty),
    rule("SequenceErase", 11, sequence_erase),
    rule("SequenceInsert", 11, sequence_insert),
    rule("SequenceLength", 11, sequence_length),
    rule("SplitToSequence", 11, split_to_sequence),
];

/// A tensor cut into more parts than this is packed: each part known by itself is a node's output.
const MOST_PARTS: i64 = 1024;

/// A sequence in either form.
pub(super) enum Sequence {
    Known(Vec<Item>),
    /// The packed tensor and the type of its elements.
    Packed(Value, ItemType),
}

/// An input that must be a sequence.
pub(super) fn sequence(n: &mut NodeCx<'_>, input: usize) -> Result<Sequence> {
    let item = n.item(input)?.ok_or_else(|| n.fail(format!("input {input} is required and missing")))?;
    of_item(n, item).map_err(|e| e.at(format!("input {input}")))
}

fn of_item(n: &mut NodeCx<'_>, item: Item) -> Result<Sequence> {
    match item {
        Item::Sequence(items) => Ok(Sequence::Known(items)),
        Item::Packed { value, ty: ItemType::Sequence(inner) } => Ok(Sequence::Packed(value, *inner)),
        // An optional that reaches here was found to be full.
        Item::Packed { value, ty: ItemType::Optional(inner) } if inner.is_packed() => {
            let first = n.i64(0)?;
            let content = element(n, value, *inner, first)?;
            of_item(n, content)
        }
        other => Err(n.fail(format!("must be a sequence, found {}", other.ty(n.model())?))),
    }
}

impl Sequence {
    /// The packed tensor and the type of its elements.
    pub(super) fn packed(self, n: &mut NodeCx<'_>) -> Result<(Value, ItemType)> {
        match self {
            Sequence::Packed(value, inner) => Ok((value, inner)),
            Sequence::Known(items) => {
                let item = Item::Sequence(items);
                let ty = item.ty(n.model())?;
                let value = n.pack(&item, &ty)?;
                match ty {
                    ItemType::Sequence(inner) => Ok((value, *inner)),
                    _ => Err(n.fail("must be a sequence")),
                }
            }
        }
    }
}

fn packed_sequence(value: Value, element: ItemType) -> Outputs {
    Item::Packed { value, ty: ItemType::sequence(element) }.into()
}

/// One element of a packed sequence.
pub(super) fn element(n: &mut NodeCx<'_>, packed: Value, ty: ItemType, position: Value) -> Result<Item> {
    let Fact { ty: element_type, shape, .. } = ty.fact();
    let value = n.emit(SequenceAt { element_type, shape }, &[packed, position])?;
    Ok(Item::of(value, ty))
}

fn tensors(n: &NodeCx<'_>, items: Vec<Item>) -> Result<Vec<Value>> {
    let tensor = |item: Item| match item {
        Item::Tensor(v) => Ok(v),
        _ => Err(n.fail("the sequence must hold tensors alone")),
    };
    items.into_iter().map(tensor).collect()
}

// The position, where it is known.
fn known(n: &NodeCx<'_>, position: Option<Value>) -> Option<i64> {
    n.ints(position?).and_then(|v| v.first().copied())
}

// An index of `positions`; negative positions count from the end of the `len` elements.
fn index(n: &NodeCx<'_>, at: i64, len: usize, positions: usize) -> Result<usize> {
    let from_start = if at < 0 { at.saturating_add(len as i64) } else { at };
    let found = usize::try_from(from_start).ok().filter(|&i| i < positions);
    found.ok_or_else(|| n.fail(format!("position {at} is outside of a sequence of {len}")))
}

fn sequence_construct(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut items = vec![];
    for input in 0..n.n_inputs() {
        items.extend(n.item(input)?);
    }
    Ok(Item::Sequence(items).into())
}

fn sequence_empty(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["dtype"]);
    Ok(Item::Sequence(vec![]).into())
}

fn sequence_length(n: &mut NodeCx<'_>) -> Result<Outputs> {
    match sequence(n, 0)? {
        Sequence::Known(items) => Ok(n.i64(items.len() as i64)?.into()),
        Sequence::Packed(value, _) => Ok(n.emit(SequenceLength, &[value])?.into()),
    }
}

fn sequence_at(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = sequence(n, 0)?;
    let at = n.input(1)?;
    match (items, known(n, Some(at))) {
        (Sequence::Known(items), Some(at)) => {
            let at = index(n, at, items.len(), items.len())?;
            Ok(items[at].clone().into())
        }
        (Sequence::Known(items), None) if all_alike(n, &items) => {
            // Tensors of one shape are picked from a stack.
            let values = tensors(n, items)?;
            let rows = values.iter().map(|&v| n.unsqueeze(v, &[0])).collect::<Result<Vec<_>>>()?;
            let stack = n.concat(&rows, 0)?;
            let at = if n.rank(at) == Some(0) { at } else { n.reshape(at, &[])? };
            Ok(n.gather(stack, at, 0)?.into())
        }
        (items, _) => {
            let (value, inner) = items.packed(n)?;
            Ok(element(n, value, inner, at)?.into())
        }
    }
}

// Whether all are tensors of one static shape and there is one at least.
fn all_alike(n: &NodeCx<'_>, items: &[Item]) -> bool {
    let shape = |item: &Item| match item {
        Item::Tensor(v) => n.shape(*v).to_static(),
        _ => None,
    };
    let first = items.first().and_then(shape);
    first.is_some() && items.iter().all(|item| shape(item) == first)
}

fn sequence_insert(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = sequence(n, 0)?;
    let item = n.item(1)?.ok_or_else(|| n.fail("input 1 is required and missing"))?;
    let position = n.opt(2)?;
    match (items, known(n, position)) {
        (Sequence::Known(mut items), at) if at.is_some() || position.is_none() => {
            // The end itself is a position to insert at; from the end, -1 is in front of the last.
            let len = items.len();
            let at = at.map_or(Ok(len), |at| index(n, at, len, len + 1))?;
            items.insert(at, item);
            Ok(Item::Sequence(items).into())
        }
        (items, _) => {
            let (value, inner) = items.packed(n)?;
            let inner = join(&inner, &item.ty(n.model())?)?;
            let item = n.pack(&item, &inner)?;
            let inputs: Vec<Value> = [value, item].into_iter().chain(position).collect();
            Ok(packed_sequence(n.emit(SequenceInsert, &inputs)?, inner))
        }
    }
}

fn sequence_erase(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let items = sequence(n, 0)?;
    let position = n.opt(1)?;
    match (items, known(n, position)) {
        (Sequence::Known(mut items), at) if at.is_some() || position.is_none() => {
            let at = index(n, at.unwrap_or(-1), items.len(), items.len())?;
            items.remove(at);
            Ok(Item::Sequence(items).into())
        }
        (items, _) => {
            let (value, inner) = items.packed(n)?;
            let inputs: Vec<Value> = [value].into_iter().chain(position).collect();
            Ok(packed_sequence(n.emit(SequenceErase, &inputs)?, inner))
        }
    }
}

fn concat_from_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.required("axis")?;
    let new_axis = n.attr("new_axis", 0i64)? != 0;
    let items = match sequence(n, 0)? {
        Sequence::Known(items) => items,
        Sequence::Packed(value, inner) => {
            let Fact { ty: element_type, shape, .. } = inner.fact();
            return Ok(n.emit(SequenceConcat { axis, new_axis, element_type, shape }, &[value])?.into());
        }
    };
    let mut values = tensors(n, items)?;
    if values.is_empty() {
        return Err(n.unsupported("an empty sequence has no concatenation"));
    }
    if new_axis {
        values = values.iter().map(|&v| n.unsqueeze(v, &[axis])).collect::<Result<Vec<_>>>()?;
    }
    Ok(n.concat(&values, axis)?.into())
}

fn split_to_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let axis: i64 = n.attr("axis", 0)?;
    let keep = n.attr("keepdims", 1i64)? != 0;
    let x = n.input(0)?;
    let split = n.opt(1)?;
    let Some((at, lengths)) = known_lengths(n, x, axis, split)? else {
        return split_at_run_time(n, x, axis, split, keep);
    };
    let axis = n.i64(at as i64)?;
    let mut values = n.emit_all(VariadicSplit, &[x, axis, lengths])?;
    if !keep && split.is_none() {
        values = values.iter().map(|&v| n.squeeze(v, &[at as i64])).collect::<Result<_>>()?;
    }
    Ok(Item::Sequence(values.into_iter().map(Item::Tensor).collect()).into())
}

// The axis and the lengths of the parts, where it is known how many there are.
fn known_lengths(n: &mut NodeCx<'_>, x: Value, axis: i64, split: Option<Value>) -> Result<Option<(usize, Value)>> {
    let Some(rank) = n.rank(x) else { return Ok(None) };
    let at = n.axis(axis, rank)?;
    if let Some(split) = split.filter(|&v| n.rank(v) == Some(1)) {
        let few = n.shape(split).dim(0).get().is_some_and(|count| count <= MOST_PARTS);
        return Ok(few.then_some((at, split)));
    }
    let size = match split {
        None => 1,
        Some(split) => match n.ints(split).and_then(|v| v.first().copied()) {
            Some(size) if n.rank(split) == Some(0) => size,
            _ => return Ok(None),
        },
    };
    if size < 1 {
        return Err(n.fail(format!("parts must have 1 or more elements, found {size}")));
    }
    let Some(total) = n.shape(x).dim(at).get() else { return Ok(None) };
    if total.unsigned_abs().div_ceil(size.unsigned_abs()) > MOST_PARTS as u64 {
        return Ok(None);
    }
    let parts: Vec<i64> = (0..total).step_by(size as usize).map(|begin| size.min(total - begin)).collect();
    Ok(Some((at, n.i64s(&parts)?)))
}

fn split_at_run_time(
    n: &mut NodeCx<'_>,
    x: Value,
    axis: i64,
    split: Option<Value>,
    keep_axis: bool,
) -> Result<Outputs> {
    let mut shape = n.shape(x).clone();
    if let Some(dims) = shape.dims_mut() {
        let at = n.axis(axis, dims.len())?;
        match split {
            None if !keep_axis => drop(dims.remove(at)),
            None => dims[at] = Dim::known(1),
            Some(_) => dims[at] = Dim::ANY,
        }
    }
    let inner = ItemType::of(&Fact::new(n.ty(x), shape));
    let inputs: Vec<Value> = [x].into_iter().chain(split).collect();
    let value = n.emit(SequenceSplit { axis, keep_axis }, &inputs)?;
    Ok(packed_sequence(value, inner))
}
