//! detection.

opset! {}
