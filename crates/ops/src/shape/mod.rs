//! Operations about shapes themselves, and tensors made from a few numbers.

opset! { eye::{Eye}, range::{Range, RangeV1}, shape_of::{ShapeOf, ShapeOfV1} }
