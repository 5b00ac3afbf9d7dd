//! activation.

opset! {}
