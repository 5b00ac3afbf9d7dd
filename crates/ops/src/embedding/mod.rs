//! embedding.

opset! {}
