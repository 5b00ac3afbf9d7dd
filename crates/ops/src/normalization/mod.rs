//! normalization.

opset! {}
