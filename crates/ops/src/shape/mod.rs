//! Operations about shapes themselves.

opset! { shape_of::{ShapeOf, ShapeOfV1} }
