//! Casts. A float that an 8-bit float cannot hold becomes its largest number unless `saturate` is off; our Convert never
//! saturates there.

use crate::tensor::element_type;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::convert::ConvertLike;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule("Cast", 1, cast), rule("CastLike", 15, cast_like)];

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

fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let saturate: bool = n.attr("saturate", true)?;
    n.ignore(&["round_mode"]);
    let to = type_attr(n, "to")?.ok_or_else(|| n.fail("attribute `to` is required and missing"))?;
    let x = n.input(0)?;
    Ok(to_type(n, x, to, saturate)?.into())
}

fn cast_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let saturate: bool = n.attr("saturate", true)?;
    n.ignore(&["round_mode"]);
    let (x, like) = (n.input(0)?, n.input(1)?);
    match n.ty(like) {
        ElementType::Dynamic => Ok(n.emit(ConvertLike, &[x, like])?.into()),
        ty => Ok(to_type(n, x, ty, saturate)?.into()),
    }
}

fn to_type(n: &mut NodeCx<'_>, x: Value, to: ElementType, saturate: bool) -> Result<Value> {
    let most = match to {
        ElementType::F8E4M3 => Some(448.0),
        ElementType::F8E5M2 => Some(57344.0),
        _ => None,
    };
    let wide = n.ty(x).is_float() && n.ty(x).bits() > 8;
    let x = match most.filter(|_| saturate && wide) {
        Some(most) => n.emit(Clamp { min: -most, max: most }, &[x])?,
        None => x,
    };
    n.convert(x, to)
}
