//! signal.

opset! {}
