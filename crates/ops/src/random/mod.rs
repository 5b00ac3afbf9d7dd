//! random.

opset! {}
