//! arithmetic.

opset! {}
