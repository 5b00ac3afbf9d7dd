//! Attribute messages to attribute values. Element types are `Type`, or their name where the engine has no such type; shapes
//! are `Shape`; a list of shapes is a list of their texts. Functions are not values: `expand` makes graphs of them.

use crate::store::Store;
use crate::tensor::tensor;
use crate::types::{self, DataType};
use crate::wire;
use bytes::Bytes;
use carafe_graph::{AttrValue, Error, Result, TensorAttr};

/// No size, axis or count is larger, and rules may multiply a few of these.
const MOST_INT: u64 = 1 << 40;

/// The value of the attribute `name`; `None` for a function, or for nothing at all.
pub(crate) fn value(name: &str, a: &wire::AttrValue, store: &Store) -> Result<Option<AttrValue>> {
    let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
    Ok(Some(if let Some(s) = &a.s {
        AttrValue::Str(text(s))
    } else if let Some(i) = a.i {
        // Only seeds are any number.
        if i.unsigned_abs() > MOST_INT && !name.starts_with("seed") {
            return Err(Error::invalid(format!("{i} is beyond any size or axis")));
        }
        AttrValue::Int(i)
    } else if let Some(f) = a.f {
        AttrValue::Float(shortest(f))
    } else if let Some(b) = a.b {
        AttrValue::Bool(b)
    } else if let Some(ty) = a.r#type {
        let ty = DataType::of(ty)?;
        ty.name().map_or(AttrValue::Type(ty.element_type()), |name| AttrValue::Str(name.into()))
    } else if let Some(shape) = &a.shape {
        AttrValue::Shape(types::shape(shape)?)
    } else if let Some(t) = &a.tensor {
        AttrValue::Tensor(TensorAttr(tensor(t, store)?))
    } else if let Some(list) = &a.list {
        match self::list(list)? {
            Some(value) => value,
            None => return Ok(None),
        }
    } else if let Some(name) = &a.placeholder {
        return Err(Error::invalid(format!("is `{name}` of the function around it, and there is none")));
    } else {
        return Ok(None);
    }))
}

// An f32 by its shortest digits, so that 0.1 stays 0.1 in messages and files.
fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}

fn list(list: &wire::ListValue) -> Result<Option<AttrValue>> {
    let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
    Ok(Some(if !list.i.is_empty() {
        AttrValue::Ints(list.i.clone())
    } else if !list.s.is_empty() {
        AttrValue::Strs(list.s.iter().map(text).collect())
    } else if !list.f.is_empty() {
        AttrValue::Floats(list.f.iter().map(|x| shortest(*x)).collect())
    } else if !list.b.is_empty() {
        AttrValue::Ints(list.b.iter().map(|b| i64::from(*b)).collect())
    } else if !list.r#type.is_empty() {
        let ty = |n: &i32| DataType::of(*n).map(DataType::element_type);
        AttrValue::Types(list.r#type.iter().map(ty).collect::<Result<_>>()?)
    } else if !list.shape.is_empty() {
        let shape = |s| types::shape(s).map(|s| s.to_string());
        AttrValue::Strs(list.shape.iter().map(shape).collect::<Result<_>>()?)
    } else if !list.tensor.is_empty() {
        return Err(Error::unsupported("lists of tensors are not supported"));
    } else if !list.func.is_empty() {
        return Ok(None);
    } else {
        // Of any kind.
        AttrValue::Text(String::new())
    }))
}
