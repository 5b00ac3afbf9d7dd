//! convolution.

opset! {}
