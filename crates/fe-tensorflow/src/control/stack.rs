//! A list of tensors as one tensor with a leading axis. All elements of a list have one shape. Of a list that was made without
//! a shape, or with part of one, each unknown size is 1 until the first element is set: the zeros that stand there are then
//! stretched to the size of that element. A list of which not even the rank is known begins as a vector.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::indexing::ScatterUpdate;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Concat};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

/// The type of a list's elements: that of the tensor that carries them, and whether they are complex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) ty: ElementType,
    /// Complex numbers have their parts in a last axis of 2, which no shape of TensorFlow mentions.
    complex: bool,
}

impl Element {
    /// By an attribute of the node.
    pub(super) fn of(n: &NodeCx<'_>, attribute: &str) -> Result<Element> {
        match n.attr_value(attribute) {
            Some(AttrValue::Type(ty)) => Ok(Element { ty: *ty, complex: false }),
            Some(AttrValue::Str(name)) => match name.as_str() {
                "complex64" => Ok(Element { ty: ElementType::F32, complex: true }),
                "complex128" => Ok(Element { ty: ElementType::F64, complex: true }),
                name => Err(n.unsupported(format!("a list of elements of type {name} is not supported"))),
            },
            _ => Err(n.fail(format!("attribute `{attribute}` is required and missing"))),
        }
    }
    /// The shape of a tensor that carries an element of this shape.
    pub(super) fn carried(self, shape: &PartialShape) -> PartialShape {
        match shape.dims() {
            Some(dims) if self.complex => PartialShape::new(dims.iter().copied().chain([Dim::known(2)])),
            _ => shape.clone(),
        }
    }
}

/// The shape that an input declares for the elements of a list: -1 is an unknown size, a scalar no shape at all.
pub(super) fn declared_shape(n: &mut NodeCx<'_>, input: usize) -> Result<PartialShape> {
    let v = n.input(input)?;
    if n.rank(v) == Some(0) {
        return Ok(PartialShape::dynamic());
    }
    Ok(match n.fact(v).dims() {
        Some(dims) => PartialShape::new(dims.iter().map(|d| d.get().filter(|n| *n >= 0).map_or(Dim::ANY, Dim::known))),
        None => n.shape(v).dim(0).size().map_or(PartialShape::dynamic(), PartialShape::any_of_rank),
    })
}

/// A list of `count` elements (a scalar) that are zeros, or the empty text.
pub(super) fn zeros(n: &mut NodeCx<'_>, element: Element, shape: &PartialShape, count: Value) -> Result<Value> {
    let shape = element.carried(shape);
    let zero = match element.ty {
        ElementType::String => n.constant(Tensor::from_strings(&[], vec![String::new()])?)?,
        ty => n.scalar(ty, 0.0)?,
    };
    let count = n.convert(count, ElementType::I64)?;
    let count = n.reshape(count, &[1])?;
    let sizes: Vec<i64> = shape.dims().unwrap_or(&[]).iter().map(|d| d.get().unwrap_or(1)).collect();
    let target = match sizes.is_empty() {
        true => count,
        false => {
            let sizes = n.i64s(&sizes)?;
            n.concat(&[count, sizes], 0)?
        }
    };
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, target])
}

/// The number of elements, as an i64 vector of one.
pub(super) fn len(n: &mut NodeCx<'_>, list: Value) -> Result<Value> {
    n.size(list, 0)
}

/// The number of elements, as an i32 scalar.
pub(super) fn len_i32(n: &mut NodeCx<'_>, list: Value) -> Result<Value> {
    let len = n.length(list, 0)?;
    n.convert(len, ElementType::I32)
}

/// The list with elements as large as `value`. With `axes`, `value` has that many axes in front of those of an element.
pub(super) fn fit(n: &mut NodeCx<'_>, list: Value, value: Value, axes: usize) -> Result<Value> {
    let (list_shape, shape) = (n.shape(list).clone(), n.shape(value).clone());
    let same = |(a, b): (&Dim, &Dim)| a.get().is_some() && a.get() == b.get();
    if let (Some(a), Some(b)) = (list_shape.dims(), shape.dims())
        && a.len() + axes == b.len() + 1
        && a[1..].iter().zip(&b[axes..]).all(same)
    {
        return Ok(list);
    }
    let whole = n.shape_of(value)?;
    let sizes = if axes == 0 { whole } else { n.part(whole, axes as i64, i64::MAX, 0)? };
    let count = len(n, list)?;
    let target = n.emit(Concat { axis: 0 }, &[count, sizes])?;
    let list = match (list_shape.rank(), shape.rank().map(|r| r + 1 - axes)) {
        (Some(a), Some(b)) if a == b => list,
        (Some(a), Some(b)) if a < b => {
            let new: Vec<i64> = (a as i64..b as i64).collect();
            n.unsqueeze(list, &new)?
        }
        (Some(a), Some(b)) => {
            return Err(n.fail(format!("the list has elements with {} axes, found one with {}", a - 1, b - 1)));
        }
        // Nothing was set yet, or the rank of what is set is not known.
        (Some(1), None) => {
            let rank = n.shape_of(sizes)?;
            let one = n.i64(1)?;
            let ones = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[one, rank])?;
            let shape = n.emit(Concat { axis: 0 }, &[count, ones])?;
            n.reshaped(list, shape, false)?
        }
        _ => list,
    };
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[list, target])
}

/// The list with one element set. `grows`: an index behind the end makes the list longer.
pub(super) fn set(n: &mut NodeCx<'_>, list: Value, index: Value, value: Value, grows: bool) -> Result<Value> {
    let row = n.unsqueeze(value, &[0])?;
    // Of one element there is nothing to keep.
    if !grows && n.shape(list).dims().is_some_and(|d| d.first().is_some_and(|d| d.get() == Some(1))) {
        return Ok(row);
    }
    let index = n.convert(index, ElementType::I64)?;
    let index = n.reshape(index, &[1])?;
    let mut list = fit(n, list, value, 0)?;
    if grows {
        let one = n.i64s(&[1])?;
        let count = n.plus(index, one)?;
        list = lengthen(n, list, count)?;
    }
    put_rows(n, list, index, row)
}

/// The list with the rows of a tensor at these indices.
pub(super) fn put_rows(n: &mut NodeCx<'_>, list: Value, indices: Value, rows: Value) -> Result<Value> {
    let axis = n.i64(0)?;
    n.emit(ScatterUpdate, &[list, indices, rows, axis])
}

/// The list with zeros behind its end so that it has at least `count` (a vector of one) elements.
pub(super) fn lengthen(n: &mut NodeCx<'_>, list: Value, count: Value) -> Result<Value> {
    let have = len(n, list)?;
    let more = n.minus(count, have)?;
    let none = n.i64s(&[0])?;
    let more = n.max(more, none)?;
    let shape = n.shape_of(list)?;
    let sizes = n.part(shape, 1, i64::MAX, 0)?;
    let target = n.emit(Concat { axis: 0 }, &[more, sizes])?;
    let zero = match n.ty(list) {
        ElementType::String => n.constant(Tensor::from_strings(&[], vec![String::new()])?)?,
        _ => n.scalar_like(list, 0.0)?,
    };
    let tail = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, target])?;
    n.emit(Concat { axis: 0 }, &[list, tail])
}

/// The list with an element behind its end.
pub(super) fn push(n: &mut NodeCx<'_>, list: Value, value: Value) -> Result<Value> {
    let list = fit(n, list, value, 0)?;
    let row = n.unsqueeze(value, &[0])?;
    n.emit(Concat { axis: 0 }, &[list, row])
}

/// The list as a tensor whose rows have the declared shape.
pub(super) fn stacked(n: &mut NodeCx<'_>, list: Value, element: Element, declared: &PartialShape) -> Result<Value> {
    let declared = element.carried(declared);
    let (Some(wanted), Some(found)) = (declared.dims(), n.shape(list).dims().map(<[Dim]>::to_vec)) else {
        return Ok(list);
    };
    let rows = found.get(1..).unwrap_or(&[]);
    let is_open = |(w, f): (&Dim, &Dim)| w.get().is_some_and(|w| w > 1 && f.get() == Some(1));
    if rows.len() < wanted.len() || wanted.iter().zip(rows).any(is_open) {
        // Nothing was ever set; the elements are zeros of the declared shape.
        let new: Vec<i64> = (found.len() as i64..1 + wanted.len() as i64).collect();
        let list = if new.is_empty() { list } else { n.unsqueeze(list, &new)? };
        let count = len(n, list)?;
        let sizes: Vec<i64> = wanted.iter().map(|d| d.get().unwrap_or(1)).collect();
        let sizes = n.i64s(&sizes)?;
        let target = n.concat(&[count, sizes], 0)?;
        return n.emit(Broadcast { mode: BroadcastMode::Bidirectional }, &[list, target]);
    }
    if rows.len() != wanted.len() {
        return Err(n.fail(format!("the list has elements with {} axes, declared are {}", rows.len(), wanted.len())));
    }
    // A pattern says what inference cannot know; 0 copies.
    let adds = |(w, f): (&Dim, &Dim)| w.get().is_some_and(|w| w > 0) && f.get().is_none();
    if !wanted.iter().zip(rows).any(adds) {
        return Ok(list);
    }
    let size = |(w, f): (&Dim, &Dim)| if adds((w, f)) { w.get().unwrap_or(0) } else { 0 };
    let pattern: Vec<i64> = std::iter::once(0).chain(wanted.iter().zip(rows).map(size)).collect();
    n.reshape(list, &pattern)
}

/// Elements by index.
pub(super) fn get(n: &mut NodeCx<'_>, list: Value, indices: Value) -> Result<Value> {
    if is_all(n, list, indices) {
        return Ok(list);
    }
    n.gather(list, indices, 0)
}

/// Whether indices are 0, 1, ... for every row of a tensor.
pub(super) fn is_all(n: &NodeCx<'_>, rows: Value, indices: Value) -> bool {
    let Some(len) = n.shape(rows).dims().and_then(|d| d.first().copied()) else { return false };
    if let (Some(len), Some(list)) = (len.get(), n.ints(indices)) {
        return n.rank(indices) == Some(1) && list.len() as i64 == len && list.iter().copied().eq(0..len);
    }
    let model = n.model();
    let mut at = indices;
    while let Some((node, _)) = model.producer::<carafe_ops::convert::Convert>(at) {
        at = model.node(node).inputs()[0];
    }
    let Some((range, _)) = model.producer::<carafe_ops::shape::Range>(at) else { return false };
    let inputs = model.node(range).inputs();
    let is = |v: Value, number: i64| model.fact(v).ints().as_deref() == Some(&[number]);
    let count = n.shape(indices).dim(0);
    let same = match (count.symbol(), len.symbol()) {
        (Some(a), Some(b)) => a == b,
        _ => count.get().is_some() && count.get() == len.get(),
    };
    is(inputs[0], 0) && is(inputs[2], 1) && same
}

/// The elements joined on their first axis, and the length of each as i64.
pub(super) fn joined(n: &mut NodeCx<'_>, list: Value) -> Result<(Value, Value)> {
    let shape = n.shape_of(list)?;
    let rest = n.part(shape, 2, i64::MAX, 0)?;
    let open = n.i64s(&[-1])?;
    let both = n.part(shape, 0, 2, 0)?;
    let axis = n.i64s(&[0])?;
    let rows = n.emit(carafe_ops::reduce::ReduceProd { keep_dims: true }, &[both, axis])?;
    // -1 is no pattern for a tensor without elements.
    let first = if n.fact(rows).ints().is_some() { rows } else { open };
    let first = if n.shape(list).dims().is_some_and(|d| d.iter().all(|d| d.min() > 0)) { first } else { rows };
    let target = n.emit(Concat { axis: 0 }, &[first, rest])?;
    let value = n.reshaped(list, target, false)?;
    let (count, each) = (n.part(shape, 0, 1, 0)?, n.part(shape, 1, 2, 0)?);
    let lengths = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[each, count])?;
    Ok((value, lengths))
}

/// A tensor cut on its first axis into elements of these lengths, which must be equal and known.
pub(super) fn split(n: &mut NodeCx<'_>, value: Value, lengths: Value) -> Result<Value> {
    let Some(list) = n.ints(lengths) else {
        return Err(n.unsupported("the lengths of the parts of a list must be known before the run"));
    };
    let each = list.first().copied().unwrap_or(0);
    if list.iter().any(|l| *l != each) {
        return Err(n.unsupported(format!("the parts of a list must have one length, found {list:?}")));
    }
    let shape = n.shape_of(value)?;
    let rest = n.part(shape, 1, i64::MAX, 0)?;
    let front = n.i64s(&[list.len() as i64, each])?;
    let target = n.emit(Concat { axis: 0 }, &[front, rest])?;
    n.reshaped(value, target, false)
}
