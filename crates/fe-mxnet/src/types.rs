//! Element types: numbers in files of arrays and in `__dtype__`, names in attributes.

use carafe_tensor::ElementType;

const TYPES: &[(i64, &str, ElementType)] = &[
    (0, "float32", ElementType::F32),
    (1, "float64", ElementType::F64),
    (2, "float16", ElementType::F16),
    (3, "uint8", ElementType::U8),
    (4, "int32", ElementType::I32),
    (5, "int8", ElementType::I8),
    (6, "int64", ElementType::I64),
    (7, "bool", ElementType::Boolean),
    (8, "int16", ElementType::I16),
    (9, "uint16", ElementType::U16),
    (10, "uint32", ElementType::U32),
    (11, "uint64", ElementType::U64),
    (12, "bfloat16", ElementType::Bf16),
];

/// The type of a number.
pub(crate) fn element_type(flag: i64) -> Option<ElementType> {
    TYPES.iter().find(|(n, ..)| *n == flag).map(|(.., ty)| *ty)
}

/// The number of a type.
pub(crate) fn type_flag(ty: ElementType) -> Option<i32> {
    TYPES.iter().find(|(.., t)| *t == ty).map(|(n, ..)| *n as i32)
}

/// The type of a name, or of a number written as text.
pub(crate) fn type_by_name(name: &str) -> Option<ElementType> {
    let by_name = TYPES.iter().find(|(_, n, _)| *n == name).map(|(.., ty)| *ty);
    by_name.or_else(|| element_type(name.parse().ok()?))
}
