//! Attribute messages to attribute values. Old files leave the kind out; then the filled field tells it.

use crate::file::Files;
use crate::tensor::{dense, element_type, tensor};
use crate::wire::AttributeProto;
use bytes::Bytes;
use carafe_graph::{AttrValue, Error, Result, TensorAttr};

/// The value; `None` for a sub-graph, which is translated when a rule asks for it.
pub(crate) fn value(a: &AttributeProto, files: &Files) -> Result<Option<AttrValue>> {
    let text = |b: &Bytes| String::from_utf8_lossy(b).into_owned();
    let kind = match a.r#type.unwrap_or(0) {
        0 => guess(a),
        n => n,
    };
    Ok(Some(match kind {
        1 => AttrValue::Float(shortest(a.f.unwrap_or(0.0))),
        2 => AttrValue::Int(a.i.unwrap_or(0)),
        3 => AttrValue::Str(a.s.as_ref().map(text).unwrap_or_default()),
        4 => match &a.t {
            Some(t) => AttrValue::Tensor(TensorAttr(tensor(t, files)?)),
            None => return Err(Error::invalid("a tensor attribute is empty")),
        },
        5 | 10 => return Ok(None),
        6 => AttrValue::Floats(a.floats.iter().map(|&x| shortest(x)).collect()),
        7 => AttrValue::Ints(a.ints.clone()),
        8 => AttrValue::Strs(a.strings.iter().map(text).collect()),
        11 => match &a.sparse_tensor {
            Some(t) => AttrValue::Tensor(TensorAttr(dense(t, files)?)),
            None => return Err(Error::invalid("a sparse tensor attribute is empty")),
        },
        13 => {
            let number = a.tp.as_ref().and_then(|t| t.tensor_type.as_ref()).and_then(|t| t.elem_type).unwrap_or(0);
            AttrValue::Type(element_type(number)?)
        }
        n => return Err(Error::unsupported(format!("attributes of kind {n} are not supported"))),
    }))
}

// An f32 by its shortest digits, so that 0.1 stays 0.1 in messages and files.
fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}

fn guess(a: &AttributeProto) -> i32 {
    let fields = [
        (a.f.is_some(), 1),
        (a.i.is_some(), 2),
        (a.s.is_some(), 3),
        (a.t.is_some(), 4),
        (a.g.is_some(), 5),
        (!a.floats.is_empty(), 6),
        (!a.ints.is_empty(), 7),
        (!a.strings.is_empty(), 8),
        (a.sparse_tensor.is_some(), 11),
        (a.tp.is_some(), 13),
    ];
    fields.into_iter().find(|(filled, _)| *filled).map_or(7, |(_, kind)| kind)
}
