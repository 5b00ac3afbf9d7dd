//! compare.

opset! {}
