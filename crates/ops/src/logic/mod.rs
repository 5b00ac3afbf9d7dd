//! logic.

opset! {}
