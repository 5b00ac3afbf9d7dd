//! strings.

opset! {}
