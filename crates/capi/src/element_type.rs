//! `ov_element_type_e`, numbered as since 2025.1.

use crate::status::{Failure, Outcome};
use carafe::ElementType::{self, *};
use std::ffi::c_uint;

/// `ov_element_type_e`.
pub type ElementNumber = c_uint;

/// In the order of the numbers.
const TYPES: [ElementType; 26] = [
    Dynamic, Boolean, Bf16, F16, F32, F64, I4, I8, I16, I32, I64, U1, U2, U3, U4, U6, U8, U16, U32, U64, Nf4, F8E4M3,
    F8E5M2, String, F4E2M1, F8E8M0,
];

pub(crate) fn from_number(number: ElementNumber) -> Outcome<ElementType> {
    let found = TYPES.get(number as usize).copied();
    found.ok_or_else(|| {
        Failure::argument(format!("there is no element type {number}; they are 0 to {}", TYPES.len() - 1))
    })
}

pub(crate) fn to_number(ty: ElementType) -> Outcome<ElementNumber> {
    let found = TYPES.iter().position(|t| *t == ty);
    found.map(|n| n as ElementNumber).ok_or_else(|| Failure::argument(format!("the C API has no number for type {ty}")))
}
