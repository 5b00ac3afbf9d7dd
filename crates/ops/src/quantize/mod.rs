//! Operations that round numbers to fewer levels and keep their float type.

opset! { fake_convert::{FakeConvert}, fake_quantize::{FakeQuantize} }
