//! reduce.

opset! {}
