//! linear.

opset! {}
