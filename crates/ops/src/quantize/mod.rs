//! quantize.

opset! {}
