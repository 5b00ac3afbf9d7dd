//! Boolean algebra, and the same on the bits of integers.

mod bitwise;
mod logical;

opset! {
    bitwise_and::{BitwiseAnd}, bitwise_left_shift::{BitwiseLeftShift}, bitwise_not::{BitwiseNot},
    bitwise_or::{BitwiseOr}, bitwise_right_shift::{BitwiseRightShift}, bitwise_xor::{BitwiseXor},
    logical_and::{LogicalAnd}, logical_not::{LogicalNot}, logical_or::{LogicalOr}, logical_xor::{LogicalXor},
    xor::{Xor},
}
