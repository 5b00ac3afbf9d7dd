//! Types of graph inputs and outputs, and the spelling of domains.

use crate::tensor::element_type;
use crate::wire::{DimensionProto, TypeProto, ValueInfoProto};
use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// No tensor has more along one axis, and sizes computed from a few of these do not overflow.
const MAX_DIM: i64 = 1 << 40;

/// `ai.onnx` is another word for the default domain.
pub(crate) fn domain(domain: Option<&str>) -> String {
    match domain.unwrap_or("") {
        "ai.onnx" => String::new(),
        d => d.to_string(),
    }
}

/// Element type and shape of a declared tensor; nothing declared is nothing known.
pub(crate) fn of_value(value: &ValueInfoProto) -> Result<(ElementType, PartialShape)> {
    let name = value.name.as_deref().unwrap_or("");
    let Some(ty) = &value.r#type else { return Ok((ElementType::Dynamic, PartialShape::dynamic())) };
    of_type(ty).map_err(|e| e.at(format!("input `{name}`")))
}

fn of_type(ty: &TypeProto) -> Result<(ElementType, PartialShape)> {
    if ty.sequence_type.is_some() {
        return Err(Error::unsupported("a sequence as an input of the model is not supported"));
    }
    if let Some(inner) = ty.optional_type.as_ref().and_then(|o| o.elem_type.as_ref()) {
        return of_type(inner);
    }
    let Some(tensor) = &ty.tensor_type else { return Ok((ElementType::Dynamic, PartialShape::dynamic())) };
    let element = element_type(tensor.elem_type.unwrap_or(0))?;
    let shape = match &tensor.shape {
        None => PartialShape::dynamic(),
        // Exporters write 0 and -1 for "unknown" as well.
        Some(s) => {
            let dim = |d: &DimensionProto| match d.dim_value {
                Some(n) if n > MAX_DIM => Err(Error::invalid(format!("dimension {n} is too large"))),
                Some(n) if n > 0 => Ok(Dim::known(n)),
                _ => Ok(Dim::ANY),
            };
            PartialShape::new(s.dim.iter().map(dim).collect::<Result<Vec<_>>>()?)
        }
    };
    Ok((element, shape))
}
