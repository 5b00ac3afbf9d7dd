//! Comparisons of two tensors, element by element.

mod comparison;

opset! {
    equal::{Equal}, greater::{Greater}, greater_equal::{GreaterEqual}, less::{Less}, less_equal::{LessEqual},
    not_equal::{NotEqual},
}
