//! Types of graph inputs and outputs, and the spelling of domains.

use crate::tensor::element_type;
use crate::wire::{DimensionProto, ElementTypeProto, TypeProto, ValueInfoProto};
use carafe_graph::{Error, ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// No tensor has more along one axis, and sizes computed from a few of these do not overflow.
const MAX_DIM: i64 = 1 << 40;

/// `ai.onnx` is another word for the default domain.
pub(crate) fn domain(domain: Option<String>) -> String {
    domain.filter(|d| d != "ai.onnx").unwrap_or_default()
}

/// The declared type of a graph input or output (`what` it is); nothing declared is nothing known.
pub(crate) fn of_value(what: &str, value: &ValueInfoProto) -> Result<ItemType> {
    let name = value.name.as_deref().unwrap_or("");
    let Some(ty) = &value.r#type else { return Ok(unknown()) };
    of_type(ty).map_err(|e| e.at(format!("{what} `{name}`")))
}

fn unknown() -> ItemType {
    ItemType::Tensor(ElementType::Dynamic, PartialShape::dynamic())
}

fn of_type(ty: &TypeProto) -> Result<ItemType> {
    if let Some(sequence) = &ty.sequence_type {
        return Ok(ItemType::sequence(of_content(sequence)?));
    }
    if let Some(optional) = &ty.optional_type {
        return Ok(ItemType::optional(of_content(optional)?));
    }
    let Some(tensor) = &ty.tensor_type else { return Ok(unknown()) };
    let element = element_type(tensor.elem_type.unwrap_or(0))?;
    let shape = match &tensor.shape {
        None => PartialShape::dynamic(),
        // Exporters write -1 for "unknown" as well; 0 is a size, for onnxruntime and OpenVINO too.
        Some(s) => {
            let dim = |d: &DimensionProto| match d.dim_value {
                Some(n) if n > MAX_DIM => Err(Error::invalid(format!("dimension {n} is too large"))),
                Some(n) if n >= 0 => Ok(Dim::known(n)),
                _ => Ok(Dim::ANY),
            };
            PartialShape::new(s.dim.iter().map(dim).collect::<Result<Vec<_>>>()?)
        }
    };
    Ok(ItemType::Tensor(element, shape))
}

fn of_content(wrapped: &ElementTypeProto) -> Result<ItemType> {
    let Some(inner) = &wrapped.elem_type else { return Ok(unknown()) };
    Ok(match of_type(inner)? {
        // Exporters write a shape without dimensions for elements of any shape.
        ItemType::Tensor(ty, shape) if shape.rank() == Some(0) => ItemType::Tensor(ty, PartialShape::dynamic()),
        other => other,
    })
}
