//! Arithmetic on two tensors, element by element.

pub(crate) mod binary;
pub use binary::{AutoBroadcast, Meeting};

opset! {
    add::{Add}, divide::{Divide}, floor_mod::{FloorMod}, maximum::{Maximum}, minimum::{Minimum}, modulo::{Mod},
    multiply::{Multiply}, power::{Power}, squared_difference::{SquaredDifference}, subtract::{Subtract},
}
