//! Element types by their number in the schema.

use carafe_graph::{Error, Result};
use carafe_tensor::ElementType;

/// Number of strings.
pub(crate) const STRING: i64 = 5;
/// Number of tables of complex numbers, which are carried as two real ones.
const COMPLEX: &[(i64, ElementType)] = &[(8, ElementType::F32), (11, ElementType::F64)];

/// The element type of a number. Handles of tables and variables have none.
pub(crate) fn element_type(number: i64) -> Result<ElementType> {
    use ElementType as E;
    Ok(match number {
        0 => E::F32,
        1 => E::F16,
        2 => E::I32,
        3 => E::U8,
        4 => E::I64,
        5 => E::String,
        6 => E::Boolean,
        7 => E::I16,
        8 => E::F32,
        9 => E::I8,
        10 => E::F64,
        11 => E::F64,
        12 => E::U64,
        13 | 14 => E::Dynamic,
        15 => E::U32,
        16 => E::U16,
        17 => E::I4,
        18 => E::Bf16,
        19 => E::I2,
        20 => E::U4,
        21 => E::F8E4M3,
        22 => E::F8E5M2,
        n => return Err(Error::unsupported(format!("{n} is not a known element type"))),
    })
}

/// Whether the number is that of complex numbers: a tensor of them has a last axis of two real ones.
pub(crate) fn is_complex(number: i64) -> bool {
    COMPLEX.iter().any(|(n, _)| *n == number)
}

/// Whether the number is that of a handle: of a table, a variable or a list.
pub(crate) fn is_handle(number: i64) -> bool {
    matches!(number, 13 | 14)
}
