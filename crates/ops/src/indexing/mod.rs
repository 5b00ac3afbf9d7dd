//! indexing.

opset! {}
