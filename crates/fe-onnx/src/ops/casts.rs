//! Casts. A float that an 8-bit float cannot hold becomes its largest number unless `saturate` is off; our Convert never
//! saturates there, and knows no other rounding than to the nearest.

use crate::tensor::element_type;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::Multiply;
use carafe_ops::compare::{Greater, Less};
use carafe_ops::convert::ConvertLike;
use carafe_ops::indexing::Select;
use carafe_ops::math::IsNaN;
use carafe_ops::carafe::{BitCast, ConvertText};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule("BitCast", 26, bit_cast), rule("Cast", 1, cast), rule("CastLike", 15, cast_like)];

/// An attribute that holds the number of an element type.
pub(super) fn type_attr(n: &NodeCx<'_>, name: &str) -> Result<Option<ElementType>> {
    match n.attr_value(name) {
        None => Ok(None),
        Some(AttrValue::Type(ty)) => Ok(Some(*ty)),
        // The first versions spelled the type out.
        Some(AttrValue::Str(text)) => named(text).map(Some).ok_or_else(|| {
            n.fail(format!("attribute `{name}` must be an element type, found {text}"))
        }),
        Some(_) => element_type(n.required::<i32>(name)?).map(Some),
    }
}

fn named(text: &str) -> Option<ElementType> {
    use ElementType as E;
    Some(match text.to_ascii_uppercase().as_str() {
        "FLOAT" => E::F32,
        "UINT8" => E::U8,
        "INT8" => E::I8,
        "UINT16" => E::U16,
        "INT16" => E::I16,
        "INT32" => E::I32,
        "INT64" => E::I64,
        "STRING" => E::String,
        "BOOL" => E::Boolean,
        "FLOAT16" => E::F16,
        "DOUBLE" => E::F64,
        "UINT32" => E::U32,
        "UINT64" => E::U64,
        _ => return None,
    })
}

fn destination(n: &NodeCx<'_>) -> Result<ElementType> {
    type_attr(n, "to")?.ok_or_else(|| n.fail("attribute `to` is required and missing"))
}

fn bit_cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let destination_type = destination(n)?;
    let x = n.input(0)?;
    Ok(n.emit(BitCast { destination_type }, &[x])?.into())
}

fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (to, x) = (destination(n)?, n.input(0)?);
    Ok(to_type(n, x, to)?.into())
}

fn cast_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, like) = (n.input(0)?, n.input(1)?);
    match n.ty(like) {
        ElementType::Dynamic => {
            n.ignore(&["saturate", "round_mode"]);
            Ok(n.emit(ConvertLike, &[x, like])?.into())
        }
        ty => Ok(to_type(n, x, ty)?.into()),
    }
}

fn to_type(n: &mut NodeCx<'_>, x: Value, to: ElementType) -> Result<Value> {
    let saturate: bool = n.attr("saturate", true)?;
    let rounding: String = n.attr("round_mode", "up".to_string())?;
    let from = n.ty(x);
    if !from.is_dynamic() && (from == ElementType::String) != (to == ElementType::String) {
        return n.emit(ConvertText { destination_type: to }, &[x]);
    }
    let most = match to {
        ElementType::F8E4M3 => 448.0,
        ElementType::F8E4M3Fnuz => 240.0,
        ElementType::F8E5M2 | ElementType::F8E5M2Fnuz => 57344.0,
        ElementType::F4E2M1 if from.is_dynamic() || from.is_float() => return to_f4e2m1(n, x),
        ElementType::F8E8M0 if from != to => return to_power_of_two(n, x, saturate, &rounding),
        _ => return n.convert(x, to),
    };
    if !saturate || !from.is_float() || from == to {
        return n.convert(x, to);
    }
    // Another 8-bit type may lack the limit itself.
    let x = if from.bits() > 8 { x } else { n.convert(x, ElementType::F32)? };
    let x = n.emit(Clamp { min: -most, max: most }, &[x])?;
    n.convert(x, to)
}

// The type has no NaN; ONNX's reference gives a zero, our Convert the largest number.
pub(super) fn to_f4e2m1(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let x = n.convert(x, ElementType::F32)?;
    let (missing, zero) = (n.emit(IsNaN, &[x])?, n.scalar(ElementType::F32, -0.0)?);
    let x = n.choose(missing, zero, x)?;
    n.convert(x, ElementType::F4E2M1)
}

// The nearest power of two, or the next one where that lies on the wrong side.
fn to_power_of_two(n: &mut NodeCx<'_>, x: Value, saturate: bool, rounding: &str) -> Result<Value> {
    let to = ElementType::F8E8M0;
    let mut x = n.convert(x, ElementType::F32)?;
    if saturate {
        x = n.emit(Clamp { min: 2f64.powi(-127), max: 2f64.powi(127) }, &[x])?;
    }
    let near = n.convert(x, to)?;
    let near_value = n.convert(near, ElementType::F32)?;
    let (wrong, factor) = match rounding {
        "up" => (n.emit(Less::default(), &[near_value, x])?, 2.0),
        "down" => (n.emit(Greater::default(), &[near_value, x])?, 0.5),
        "nearest" => return Ok(near),
        other => return Err(n.fail(format!("attribute `round_mode` must be up, down or nearest, found {other}"))),
    };
    let factor = n.scalar(ElementType::F32, factor)?;
    let next = n.emit(Multiply::default(), &[near_value, factor])?;
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    let y = n.emit(op, &[wrong, next, near_value])?;
    n.convert(y, to)
}
