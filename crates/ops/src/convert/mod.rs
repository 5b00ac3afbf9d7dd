//! convert.

opset! {}
