//! search.

opset! {}
