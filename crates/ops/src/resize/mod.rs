//! resize.

opset! {}
