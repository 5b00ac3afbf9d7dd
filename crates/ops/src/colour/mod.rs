//! colour.

opset! {}
