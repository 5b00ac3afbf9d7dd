//! Types of graph inputs and outputs, and the spelling of domains.

use crate::tensor::element_type;
use crate::wire::{TypeProto, ValueInfoProto};
use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

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
        // Exporters write -1 for "unknown" as well; 0 is a size, for onnxruntime and OpenVINO too.
        Some(s) => PartialShape::new(s.dim.iter().map(|d| match d.dim_value {
            Some(n) if n >= 0 => Dim::known(n),
            _ => Dim::ANY,
        })),
    };
    Ok((element, shape))
}
