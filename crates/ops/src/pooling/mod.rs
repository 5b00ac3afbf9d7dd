//! pooling.

opset! {}
