//! control.

opset! {}
