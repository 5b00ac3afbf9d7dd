//! Attributes of operators in JSON: a name and a value that names its kind.

use super::split;
use crate::attributes::{is_without_meaning, scalars};
use crate::program::Operator;
use crate::types;
use carafe_frontend::Held;
use carafe_graph::{AttrValue, Error};
use carafe_tensor::ElementType;
use serde_json::Value as Json;

/// The data of an attribute.
pub(super) fn find<'j>(op: &'j Json, name: &str) -> Option<&'j Json> {
    let all = op["A"].as_array()?;
    all.iter().find(|a| a["N"] == name).map(|a| &a["AT"]["D"])
}

/// A text.
pub(super) fn text(data: &Json) -> Option<&str> {
    data.as_str()
}

/// Puts an attribute where it belongs, under its old name.
pub(super) fn attribute(json: &Json, renamed: &[(&str, &str)], op: &mut Operator) {
    let Some(name) = json["N"].as_str() else { return };
    // Where it is computed has no effect on the result.
    let is_place = split(json["AT"]["#"].as_str().unwrap_or_default()).1 == "a_place";
    if is_place || is_without_meaning(name) || op.attrs.get(name).is_some() {
        return;
    }
    let name = renamed.iter().find(|(new, _)| *new == name).map_or(name, |(_, old)| old);
    match value(&json["AT"]) {
        Ok(Some(value)) => op.attrs.set(name, value),
        Ok(None) => {}
        Err(e) => op.broken.push((name.to_string(), Held::Broken(e.at(format!("attribute `{name}`"))))),
    }
}

/// The value of an operator that is a constant, where it may stand for an attribute.
pub(super) fn constant(op: &Operator) -> Option<AttrValue> {
    let value = op.attrs.get("value")?;
    match op.op_type.as_str() {
        "full_int_array" => Some(value.clone()),
        "fill_constant" => {
            let is_one = match op.attrs.get("shape")? {
                AttrValue::Ints(dims) => dims.iter().all(|d| *d == 1),
                _ => false,
            };
            let is_whole = matches!(op.attrs.get("dtype"), Some(AttrValue::Type(t)) if t.is_integer());
            match value {
                AttrValue::Float(x) if is_one && is_whole => Some(AttrValue::Int(*x as i64)),
                value if is_one => Some(value.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

// A value; none for what says nothing.
fn value(json: &Json) -> Result<Option<AttrValue>, Error> {
    let (_, kind) = split(json["#"].as_str().unwrap_or_default());
    let data = &json["D"];
    let wrong = || Error::invalid(format!("expected a value of kind `{kind}`, found {data}"));
    let special = || match json["VD"].as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("INF") => Some(f64::INFINITY),
        Some("-INF") => Some(f64::NEG_INFINITY),
        _ => None,
    };
    Ok(Some(match kind {
        "a_bool" => AttrValue::Bool(data.as_bool().ok_or_else(wrong)?),
        "a_i32" | "a_i64" | "a_index" => AttrValue::Int(data.as_i64().ok_or_else(wrong)?),
        "a_f32" | "a_f64" => AttrValue::Float(data.as_f64().or_else(special).ok_or_else(wrong)?),
        "a_str" | "a_layout" => AttrValue::Str(data.as_str().ok_or_else(wrong)?.to_string()),
        "a_intarray" => {
            let all: Option<Vec<i64>> = data.as_array().and_then(|d| d.iter().map(Json::as_i64).collect());
            AttrValue::Ints(all.ok_or_else(wrong)?)
        }
        "a_dtype" => match data.as_str().and_then(types::named) {
            Some(ty) => AttrValue::Type(ty),
            None if data.as_str().is_some_and(|d| d.starts_with("Undefined")) => return Ok(None),
            None => return Err(Error::unsupported(format!("element type {data}"))),
        },
        "a_scalar" => scalar(data).ok_or_else(wrong)?,
        "a_array" => {
            let all = data.as_array().ok_or_else(wrong)?.iter().map(value).collect::<Result<Vec<_>, _>>()?;
            let all: Vec<AttrValue> = all.into_iter().flatten().collect();
            match all.first() {
                Some(AttrValue::Str(_)) => AttrValue::Strs(
                    all.into_iter().filter_map(|v| if let AttrValue::Str(s) = v { Some(s) } else { None }).collect(),
                ),
                Some(AttrValue::Type(_)) => AttrValue::Types(
                    all.into_iter().filter_map(|v| if let AttrValue::Type(t) = v { Some(t) } else { None }).collect(),
                ),
                _ => scalars(&all),
            }
        }
        "a_pointer" | "a_op_dist" | "a_tensor_dist" | "a_process_mesh" | "NULL" => return Ok(None),
        _ => return Err(Error::unsupported(format!("a value of kind `{kind}`"))),
    }))
}

// The name of a type and a number of it; one of 16 bits is written as its bits.
fn scalar(data: &Json) -> Option<AttrValue> {
    let ty = types::named(data[0].as_str()?)?;
    Some(match ty {
        ElementType::Boolean => AttrValue::Bool(data[1].as_bool()?),
        ElementType::F32 | ElementType::F64 => AttrValue::Float(data[1].as_f64()?),
        ElementType::F16 | ElementType::Bf16 => return None,
        _ => AttrValue::Int(data[1].as_i64()?),
    })
}
