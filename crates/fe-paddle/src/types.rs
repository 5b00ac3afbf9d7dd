//! Element types by the numbers of `VarType.Type` and by the names that programs in JSON use.

use carafe_graph::{Error, ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// `VarType.Type` of a tensor.
pub(crate) const LOD_TENSOR: i32 = 7;
/// `VarType.Type` of an array of tensors.
pub(crate) const LOD_TENSOR_ARRAY: i32 = 13;

/// The element type of a number.
pub(crate) fn element_type(code: i64) -> Option<ElementType> {
    Some(match code {
        0 => ElementType::Boolean,
        1 => ElementType::I16,
        2 => ElementType::I32,
        3 => ElementType::I64,
        4 => ElementType::F16,
        5 => ElementType::F32,
        6 => ElementType::F64,
        20 => ElementType::U8,
        21 => ElementType::I8,
        22 => ElementType::Bf16,
        32 => ElementType::F8E4M3,
        33 => ElementType::F8E5M2,
        _ => return None,
    })
}

/// As `element_type`, for what must have one.
pub(crate) fn known(code: i64) -> Result<ElementType> {
    element_type(code).ok_or_else(|| {
        Error::unsupported(format!("element type {code} (complex numbers, strings and handles have no tensor here)"))
    })
}

/// The element type that a program in JSON names, as an attribute (`float32`) or in a type (`t_f32`).
pub(crate) fn named(name: &str) -> Option<ElementType> {
    Some(match name {
        "bool" | "t_bool" => ElementType::Boolean,
        "int8" | "t_i8" => ElementType::I8,
        "uint8" | "t_ui8" => ElementType::U8,
        "int16" | "t_i16" => ElementType::I16,
        "int32" | "t_i32" => ElementType::I32,
        "int64" | "t_i64" => ElementType::I64,
        "float16" | "t_f16" => ElementType::F16,
        "bfloat16" | "t_bf16" => ElementType::Bf16,
        "float32" | "t_f32" => ElementType::F32,
        "float64" | "t_f64" => ElementType::F64,
        "float8_e4m3fn" | "t_f8e4m3fn" => ElementType::F8E4M3,
        "float8_e5m2" | "t_f8e5m2" => ElementType::F8E5M2,
        _ => return None,
    })
}

/// The type of a value; sizes below zero are open.
pub(crate) fn tensor(ty: ElementType, dims: &[i64]) -> ItemType {
    let dims = dims.iter().map(|d| if *d < 0 { Dim::ANY } else { Dim::known(*d) });
    ItemType::Tensor(ty, PartialShape::new(dims))
}
