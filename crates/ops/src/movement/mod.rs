//! movement.

opset! {}
