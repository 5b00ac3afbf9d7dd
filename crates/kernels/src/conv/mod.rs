//! Convolutions of images that lie channels last.

mod direct;
mod fill;
mod shape;

pub use direct::{Conv, ConvPlanar};
pub use shape::ConvShape;
